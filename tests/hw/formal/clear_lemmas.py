"""Statements about signals inside components, with which the proof that soft reset equals reset is a short induction.

A pair of a value and a bit says that the value is equal in both copies where the bit is high. A bit alone is always
high: an induction has to be told what cannot be reached.
"""

from amaranth.hdl import Cat, Module, Mux, Value

from intloom.hw.control.instruction_checks import InstructionChecker
from intloom.hw.control.waits import UNITS
from intloom.hw.mac.issue.tile_planner import _Phase
from tests.hw.formal.conditions import Lemma, Ports, Variables, delayed, once


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
