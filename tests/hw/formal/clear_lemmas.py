"""Statements about signals inside components, with which the proof that soft reset equals reset is a short induction.

A pair of a value and a bit says that the value is equal in both copies where the bit is high. A bit alone is always
high: an induction has to be told what cannot be reached.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from intloom.hw.control.instruction_checks import InstructionChecker
from intloom.hw.control.waits import UNITS
from intloom.hw.mac.epilogue.scale_normalizer import ScaleNormalizer
from intloom.hw.mac.issue.tile_planner import TilePlanner, _Phase
from intloom.hw.mac.weights.constants_loader import CONSTANT_WRITE, ConstantKind
from intloom.hw.mac.weights.fetcher import WEIGHTS_TO_SUM
from intloom.hw.mac.weights.zero_point_correction import CORRECTION_SET_BITS, ZeroPointCorrection
from intloom.hw.pipeline import pipeline_stages
from tests.hw.formal.conditions import Condition, Entries, Lemma, Ports, Variables, delayed, once


def by_itself(_: Module, __: Ports, ___: Variables) -> dict[str, Lemma]:
    """A short induction needs no more than what is known of each register."""
    return {}


def of_dispatch(_: Module, ports: Ports, inside: Variables) -> dict[str, Lemma]:
    """Words of an instruction count once they have arrived; its slot tells how many have."""
    instruction, slot, result, fsm = (inside["elaborate"][name] for name in ("instruction", "slot", "result", "fsm"))
    bits = len(ports["queues__word"])
    words = [instruction[at : at + bits] for at in range(0, len(instruction), bits)][::-1]
    checking = (f"CHECKING{cycle}" for cycle in range(InstructionChecker.LATENCY))
    filling = Cat(map(fsm.ongoing, ("FIND_UNIT", "FIND_SPACE", "ASSEMBLE"))).any()
    complete = Cat(map(fsm.ongoing, (*checking, "CHECK", "ACT", "WAITS", "COMMIT", "END"))).any()
    arrived = {
        f"word{number}": (word, complete | (filling & (slot >= UNITS + number))) for number, word in enumerate(words)
    }
    slots = ~filling | ((slot >= UNITS) & (slot <= UNITS + len(words) - 2))
    return {**arrived, "slots": slots, "result": (Value.cast(result), fsm.ongoing("ACT"))}


def first_is_current(m: Module, ports: Ports) -> Value:
    """The tile that the sequencer runs is the first one of its strip."""
    return ports.register(
        m, "first_is_current", lambda before: ports["start"] | Mux(ports["step"], ports["tile__first"], before)
    )


def of_tile_planner(m: Module, ports: Ports, inside: Variables) -> dict[str, Lemma]:
    """From FORM of the first plan on its counts are known, and those of a new plan are loaded in COUNT.

    The start of a strip is known unless each strip has one tile, which then continues; the loops are at the first tile
    whenever a plan has ended.
    """
    begun, captured = once("start")(m, ports), once("capture")(m, ports)
    phase, new_plan = inside["_strips"]["phase"], inside["_strips"]["new_plan"]
    strip, new_block, strip_ends = (inside["_strips"][name] for name in ("strip", "new_block", "strip_ends"))
    loops = inside["elaborate"]["loops"]
    settled = (phase == _Phase.READY) | (phase == _Phase.FORM)
    formed = ports.register(m, "formed", lambda before: before | (begun & (phase == _Phase.FORM)))
    counted = formed | (begun & (phase == _Phase.FORM))
    one_tile = ~Value.cast(loops.last_indices).any()
    begun_before = delayed(m, "begun", begun, 1)
    started = delayed(m, "started", ports["start"], 1)
    first = first_is_current(m, ports)
    return {
        "plan": (ports["plan"], begun),
        "tap_minus_ring": (inside["_form"]["tap_minus_ring"], begun_before),
        "counts": (Value.cast(inside["_counts"]["counts"]), counted),
        "last": (Value.cast(inside["_counts"]["last"]), formed),
        "length": (strip.length, counted),
        "start": (Value.cast(strip.start), counted & (~one_tile | new_block) & (settled | ~new_plan)),
        "captured": (Value.cast(inside["_strips"]["captured"]), captured),
        "idle": begun | ((phase == _Phase.READY) & loops.first & ~formed),
        "unformed": ~begun | formed | (new_plan & (phase != _Phase.READY)),
        "capture": ~begun | captured | (first & new_plan),
        "new plan": ~begun | ~new_plan | first,
        "begins": ~started | (begun & new_plan & first & (phase == _Phase.STEP)),
        "plan before": (phase < _Phase.COUNT) | begun_before,
        "one tile": ~(begun & one_tile) | loops.first,
        "loops": ~(((phase == _Phase.STEP) & new_plan) | ((phase == _Phase.COUNT) & strip_ends)) | loops.first,
        "ended": ~(settled & ports["finished"]) | loops.first,
        "strip goes on": ~((phase == _Phase.COUNT) & new_plan) | one_tile | ~strip_ends,
    }


def of_run_walker(m: Module, ports: Ports, inside: Variables) -> dict[str, Lemma]:
    """A transfer that was taken counts; one and two cycles later so does what is computed from it."""
    state, taken = inside["elaborate"]["state"], ~ports["i__ready"]
    begun = taken & delayed(m, "taken", taken, 1)
    known = begun & delayed(m, "begun", begun, 1)
    find, computed = inside["_find_contiguous"], ("dram", "local")
    fields = Cat(state.move[name] for name, _ in state.move.shape() if name not in computed)
    return {
        "transfer": (fields, taken),
        "plane": (Cat(state.plane, state.local_plane), taken),
        "planes": (Cat(state.planes.last, state.planes._left), taken),
        "run": (Cat(state.move.dram, state.move.local, state.memory_run, state.coded), begun),
        "rows": (Cat(state.runs.last, state.runs._left), begun),
        "contiguous": (Cat(find["rows_contiguous"], find["end"]), known),
        "first": ~taken | known | find["first"],
    }


def _channel_words(m: Module, ports: Ports) -> Signal:
    """Words of channels that were written: of each set the biases, then the scales."""

    def make() -> Signal:
        cols, write = ports.component._params.cols, CONSTANT_WRITE(ports["write"])
        written = Signal(4 * cols, name="written")
        slot = Cat(write.index[: (cols - 1).bit_length()], write.index >= cols, ports["write_set"])
        m.d.sync += written.eq(written | Mux(write.kind == ConstantKind.CHANNEL, 1 << slot, 0))
        return written

    return ports.shared("channel_words", make)


def channels_written(scales: bool, latency: int) -> Condition:
    """So many cycles after the read of a group whose biases, or scales, were all written."""

    def condition(m: Module, ports: Ports) -> Value:
        params, words = ports.component._params, _channel_words(m, ports)
        of_set = words.word_select(Cat(scales, ports["read_set"]), params.cols)
        written = of_set.word_select(ports["group"], params.lanes).all()
        return delayed(m, f"read{int(scales)}", ports["read"] & written, latency)

    return condition


def of_channel_store(m: Module, ports: Ports, _: Variables) -> dict[str, Lemma]:
    """Biases and scales that were written count once they are stored."""
    params, words = ports.component._params, _channel_words(m, ports)
    lemmas: dict[str, Lemma] = {}
    for scales, name, cycles in ((0, "bias", 1), (1, "scale", 1 + ScaleNormalizer.LATENCY)):
        stored = delayed(m, f"{name}_stored", words, cycles)
        for lane in range(params.lanes):
            entries = (stored.word_select(2 * number + scales, params.cols)[lane :: params.lanes] for number in (0, 1))
            lemmas[f"{name}{lane}"] = Entries(f"{name}{lane}", Cat(*entries))
    return lemmas


class _Corrections:
    """The words that are added up, and which sums and corrections are of words after the reset."""

    def __init__(self, m: Module, ports: Ports) -> None:
        params = ports.component._params
        self.column, self.number = Signal(range(params.cols)), Signal(CORRECTION_SET_BITS)
        self.summed, self.stored = Signal(params.cols), Signal(params.cols << CORRECTION_SET_BITS)
        cycles = ZeroPointCorrection.latency(params.rows) - 2
        word = pipeline_stages(m, "rule_word", WEIGHTS_TO_SUM(ports["to_sum"]), cycles, reset_less=False)
        layout = data.StructLayout({"valid": 1, "last": 1, "known": 1, "column": self.column.shape()})
        added, written = Signal(layout), Signal(layout)
        m.d.sync += [
            self.column.eq(self.column + word.valid),
            added.valid.eq(word.valid),
            added.last.eq(word.last),
            added.known.eq(word.first | self.summed.bit_select(self.column, 1)),
            added.column.eq(self.column),
            written.eq(added),
            self.summed.eq(self.summed | ((written.valid & written.known) << written.column)),
        ]
        with m.If(written.valid & written.last):
            m.d.sync += self.stored.eq(self.stored | (written.known << Cat(written.column, self.number)))
            m.d.sync += self.number.eq(self.number + (written.column == params.cols - 1))
        self.added, self.written = added, written
        self.stored_before = delayed(m, "stored", self.stored, 1)

    @staticmethod
    def of(m: Module, ports: Ports) -> _Corrections:
        return ports.shared("corrections_known", lambda: _Corrections(m, ports))


def corrections_stored(m: Module, ports: Ports) -> Value:
    """A group whose columns have had words of a block's first and last tile since the reset; without a read it is 0."""
    params, stored = ports.component._params, _Corrections.of(m, ports).stored_before
    cycles = ZeroPointCorrection.READ_LATENCY
    number, group, read = (delayed(m, name, ports[name], cycles) for name in ("read_set", "group", "read"))
    return ~read | stored.word_select(number, params.cols).word_select(group, params.lanes).all()


def of_zero_point_correction(m: Module, ports: Ports, inside: Variables) -> dict[str, Lemma]:
    """A sum counts from a first word after the reset on, and so does a correction."""
    lanes, known = ports.component._params.lanes, _Corrections.of(m, ports)
    accumulate, added, written = inside["_accumulate"], known.added, known.written
    in_flight = (~word.valid | word.known | ~known.summed.bit_select(word.column, 1) for word in (added, written))
    of_columns = (known.stored[column :: len(known.summed)] for column in range(len(known.summed)))
    return {
        "column": (known.column == accumulate["column"]) & (known.number == inside["_store"]["number"]),
        "operand": (accumulate["operand"], added.valid & added.known),
        "total": (accumulate["total"], written.valid & written.known),
        "sums": Entries("sums", known.summed),
        "in flight": Cat(in_flight).all(),
        "summed": Cat(~stored.any() | summed for stored, summed in zip(of_columns, known.summed, strict=True)).all(),
        "stored": ~(known.stored_before & ~known.stored).any(),
        **{f"sets{lane}": Entries(f"sets{lane}", known.stored[lane::lanes]) for lane in range(lanes)},
    }


def no_tile_in_work(m: Module, ports: Ports) -> Value:
    """No tile was asked for within the cycles that the planner takes for the next one."""
    strobe = ports["start"] | ports["step"]
    return ~Cat(delayed(m, f"strobe{k}", strobe, k) for k in range(1, TilePlanner.LATENCY)).any()


def of_sequencer(m: Module, ports: Ports, inside: Variables) -> dict[str, Lemma]:
    """The position, the tile and its plan count while a tile is current; the planner is ready where they end.

    A tile of at least as many pixels as the planner takes cycles begins without the next one, a shorter one does not.
    """
    (planner,) = ports.boxes
    active, begun = ports["active"], once("start")(m, planner)
    names = ("tile", "number", "tile_start", "strip_end", "covers_planner", "line_end")
    tile, number, tile_start, strip_end, covers, line_end = (inside["elaborate"][name] for name in names)
    strobes = [delayed(m, f"strobe{k}", planner["start"] | planner["step"], k) for k in range(1, TilePlanner.LATENCY)]
    fields = Cat(tile.line, tile.base, tile.length, tile.first, tile.last)
    return {
        "plan": (Value.cast(inside["elaborate"]["plan"]), begun),
        "tile": (fields, active),
        "position": (Value.cast(ports.component._position), active),
        "line end": (line_end, active),
        "finished": (planner["finished"], Const(1)),
        "begun": ~active | begun,
        "number": ~active | Cat(~strobe | (number <= k) for k, strobe in enumerate(strobes)).all(),
        "tile start": Mux(tile_start, number == 0, active),
        "in time": ~active | ~covers | ~strip_end | ~Cat(strobes).any(),
        "covered": ~active | ~covers | (tile.length >= TilePlanner.LATENCY),
        "ready": ~active | tile_start | covers | planner["ready"],
        "ended": ~begun | active | (planner["ready"] & planner["finished"]),
        "first": ~active | (first_is_current(m, planner) == tile.first),
    }
