"""What the proofs that soft reset equals reset say of each component, and which components have none."""

from amaranth.hdl import Module, Mux, Signal, Value

from intloom.hw.affine import AffineConstants
from intloom.hw.control.instruction_checks import InstructionChecker
from intloom.hw.control.queue import QUEUED_UNITS
from intloom.hw.mac.array.accumulator_memory import AccumulatorMemory
from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.array.mac_array import MacArray
from intloom.hw.mac.array.product import LutProduct
from intloom.hw.mac.epilogue.channel_store import ChannelStore
from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.mac.epilogue.scale_normalizer import ScaleNormalizer
from intloom.hw.mac.epilogue.table_lookup import TableLookup
from intloom.hw.mac.weights.constants_loader import CONSTANT_WRITE
from intloom.hw.mac.weights.fetcher import WEIGHTS_TO_SUM
from intloom.hw.memory.bank import Bank
from intloom.hw.memory.parity import parity_error_layout
from intloom.hw.memory.scratchpad import READERS
from intloom.hw.ports import READ_LATENCY, WEIGHT_LATENCY
from intloom.hw.spec.params import preset
from intloom.hw.vector.depthwise_constants import constant_write
from intloom.hw.vector.raster_setup import RasterSetup
from tests.hw.formal.clear_lemmas import (
    by_itself,
    channels_written,
    corrections_stored,
    first_is_current,
    no_tile_in_work,
    of_channel_store,
    of_dispatch,
    of_run_walker,
    of_sequencer,
    of_tile_planner,
    of_zero_point_correction,
)
from tests.hw.formal.conditions import (
    SAME,
    UNSEEN,
    After,
    Condition,
    Held,
    Is,
    Kept,
    Lemmas,
    Only,
    Pairs,
    Ports,
    Rule,
    Rules,
    Shifted,
    Steady,
    any_of,
    delayed,
    no_lemmas,
    once,
)


def _zero_points_stored(m: Module, ports: Ports) -> Value:
    """A column's weights whose zero points have been stored, or cleared, since the reset."""
    stored = Signal.like(ports["store"], name="stored")
    m.d.sync += stored.eq(Mux(ports["clear"], ~0, stored | ports["store"]))
    # They hold from the second word on.
    return delayed(m, "zero_points", stored.all(), 2) & ports["load"].any()


def _on_a_loaded_tile(m: Module, ports: Ports) -> Value:
    """Dot products of a pixel with a tile that was loaded as a whole since the reset."""
    loaded, active = Signal.like(ports["load"], name="loaded"), Signal(name="was_swapped")
    now = active | (ports["swap"] & loaded.all())
    m.d.sync += [loaded.eq(loaded | ports["load"]), active.eq(now)]
    return delayed(m, "pixel", now & ports["valid"], MacArray.latency(len(ports["pixel"]) // 8))


def _enabled(stage: int) -> Condition:
    """A value in this stage."""
    return lambda _, ports: ports["enable"][stage]


def _result_of_a_value(m: Module, ports: Ports) -> Value:
    """A value that has entered as many cycles ago as it takes."""
    return delayed(m, "enable", ports["enable"][0], RequantizerLane.LATENCY)


def _has_space(_: Module, ports: Ports) -> Value:
    """A load is issued while there is space."""
    return ports["space"]


def _ends_after_its_issue(m: Module, ports: Ports) -> Value:
    """A load has a word, and ends after its issue."""
    loads, beats = Signal(4, name="loads"), Signal(name="beats")
    begun = beats | ports["beat"]
    m.d.sync += [
        loads.eq(loads + ports["issue"] - (ports["last"] & ports["checked"])),
        beats.eq(begun & ~ports["last"]),
    ]
    return begun & (loads != 0)


def _walk_is_shown(m: Module, ports: Ports) -> Value:
    """A walk that starts counts in this cycle and in the one before."""
    return ports["walk__same"] & delayed(m, "walk_same", ports["walk__same"], 1)


def _strip_has_ended(m: Module, ports: Ports) -> Value:
    """A strip of which the accumulators have told the end, before they tell that it may be read."""
    strips = Signal(3, name="strips")
    m.d.sync += strips.eq(strips + ports["strip_ends"] - ports["strip_ready"])
    return strips != 0


def _as_instruction(m: Module, ports: Ports) -> Value:
    """An instruction that counts in this cycle and in those before, in which its fields are checked."""
    same = ports["instruction__same"]
    for cycles in range(1, InstructionChecker.LATENCY + 1):
        same &= delayed(m, f"instruction_same{cycles}", ports["instruction__same"], cycles)
    return same


def _word_counts(_: Module, ports: Ports) -> Value:
    """A word that counts."""
    return ports["word__same"]


def _plan_may_differ(m: Module, ports: Ports) -> Value:
    """No plan has been started."""
    return ~once("start")(m, ports)


def _plan_may_change(m: Module, ports: Ports) -> Value:
    """A plan comes in the cycle after its start."""
    return ~once("start")(m, ports) | delayed(m, "plan_starts", ports["start"], 1)


def _end_may_change(m: Module, ports: Ports) -> Value:
    """No plan has been started, or the next tile is in work."""
    return ~once("start")(m, ports) | ~ports["ready"]


def _may_start(m: Module, ports: Ports) -> Value:
    """The plan before has ended."""
    return ~once("start")(m, ports) | (ports["ready"] & ports["finished"])


def _may_step(m: Module, ports: Ports) -> Value:
    """There is a next tile; the first tile of a strip ends with the start of the next strip."""
    known = ports["ready"] & once("start")(m, ports) & ~ports["finished"]
    return known & (ports["capture"] | ~first_is_current(m, ports))


def _instruction_was_current(m: Module, ports: Ports) -> Value:
    """A tile is current, or was in the cycle before."""
    return ports["active"] | delayed(m, "active", ports["active"], 1)


def _tile_is_ready(m: Module, ports: Ports) -> Value:
    """A tile of a plan."""
    return ports["ready"] & once("start")(m, ports)


def _tile_starts_anew(m: Module, ports: Ports) -> Value:
    """A tile that does not begin at the pixel after the one before."""
    return _tile_is_ready(m, ports) & ~ports["tile__continues"]


_PARITY: Pairs = {"error": any_of("error", parity_error_layout(0), "valid")}

_FAULT: Pairs = dict.fromkeys(("unit__cause", "unit__fault_index"), "unit__fault")

_WRITE: Pairs = dict.fromkeys(("port__addr", "port__data", "port__mask"), "port__valid")

PROVED: dict[str, Pairs] = {
    "AccumulatorMemory": {
        "read_data": After(AccumulatorMemory.LATENCY),
        "readout_data": After(AccumulatorMemory.LATENCY, ("readout_en",)),
    },
    "AccumulatorReadout": {
        "residual__addr": "residual__valid",
        **dict.fromkeys(("residual__data", "residual_bytes"), "residual_arrived"),
        **dict.fromkeys(("group", "address", "tag", "channel_set", "fault_index"), "item"),
        "correction_set": "corrected",
        **dict.fromkeys(("shift", "even"), "activate"),
    },
    "Accumulators": {"readout_sums": After(Accumulators.READOUT_LATENCY, ("readout_groups",))},
    "AddressWalker": {},
    "AffineConstants": {"prepared": After(AffineConstants.LATENCY)},
    "AffineLane": {"result": UNSEEN},
    "Bank": {"read_data": After(Bank.LATENCY, ("read_en",)), **_PARITY},
    "BurstSplitter": {"i__ready": "i__valid", "issued_last": "issued"},
    "ByteTable": {"result": UNSEEN},
    "ChannelStore": {
        "corrections": After(ChannelStore.CORRECTION_STAGE, ("read",)),
        "bias": channels_written(scales=False, latency=ChannelStore.BIAS_LATENCY),
        **dict.fromkeys(("mantissa", "exponent"), channels_written(scales=True, latency=ChannelStore.SCALE_LATENCY)),
    },
    "ClockEnable": {},
    "ConstantCheck": {"mismatch_index": "mismatch"},
    "ConstantSets": {},
    "ConstantsLoader": {"write": any_of("write", CONSTANT_WRITE, "kind")},
    "CreditFifo": {"word": "push"},
    "Datapath": {"result": UNSEEN},
    "DepthwiseColumns": {"sums": UNSEEN},
    "DepthwiseConstants": {"write": any_of("write", constant_write(preset("nano")), "weights", "biases", "scales")},
    "DepthwiseEpilogue": {"result": "result_valid"},
    "DepthwiseWalker": {"o__payload": UNSEEN},
    "Dispatch": {"queues__word": "queues__valid", "end_wait": "end_write", "fault": "fault_valid"},
    "Divider": {"quotient": "result_valid"},
    "Epilogue": {"results": UNSEEN},
    "FaultLatch": {"latched__fault": "latched__valid"},
    "Fetch": {},
    "InstructionChecker": {"instruction": SAME, "result": _as_instruction},
    "InstructionDecoder": {},
    "InstructionQueues": {
        **dict.fromkeys(("wait_row", "wait_unit", "wait_value"), "wait"),
        **{f"o__{unit.value}__payload": UNSEEN for unit in QUEUED_UNITS},
    },
    "LoopSetup": {"plans__payload": UNSEEN},
    "LutProduct": {"product": After(LutProduct.LATENCY)},
    "MacArray": {"dots": _on_a_loaded_tile},
    "Norm": {"result": UNSEEN},
    "MoveFrontEnd": {"issued_last": "issued", "outside_index": "outside"},
    "NormFactors": {"result": UNSEEN},
    "OperandFetcher": {"port__addr": "port__valid"},
    "OperandStage": {"x1": UNSEEN, "x2": UNSEEN},
    "OutputWalker": {"walk": SAME},
    "ParityChecker": _PARITY,
    "PixelFetcher": {
        "act0__addr": "act0__valid",
        "act1__addr": "act1__valid",
        "word": "word_valid",
        "swap": "word_valid",
        "fault_index": "fault",
    },
    "Pool": {"maximum": UNSEEN, "total": UNSEEN},
    "ProgramCheck": {"word": SAME, "end": SAME, "last": "valid", "mismatch": After(1, ("word__same", "end__same"))},
    "RasterSetup": {
        "a": Steady(RasterSetup.LATENCY, "operation"),
        **dict.fromkeys(("window", "b", "out"), Steady(1, "operation")),
    },
    "RasterWalker": {},
    "ReadArbiter": {},
    "RequantizerLane": {
        **dict.fromkeys(("acc", "bias"), _enabled(0)),
        **dict.fromkeys(("mantissa", "exponent"), _enabled(RequantizerLane.SCALE_STAGE)),
        "zero_point": _enabled(RequantizerLane.ZERO_POINT_STAGE),
        "result": _result_of_a_value,
    },
    "ResidualAdder": {"sums": UNSEEN},
    "RunWalker": {"o__ready": "o__valid"},
    "ScaleNormalizer": dict.fromkeys(("mantissa", "exponent"), After(ScaleNormalizer.LATENCY)),
    "Scratchpad": {
        **{f"{port}__data": After(READ_LATENCY, (f"{port}__valid", f"{port}__ready")) for port in READERS},
        **_PARITY,
    },
    "SkidBuffer": {"o__ready": "o__valid"},
    "Slicer": dict.fromkeys(("slice_a", "slice_b", "slice_tap", "index", "byte", "byte_position", "group"), UNSEEN),
    "Softmax": {"result": UNSEEN},
    "StoreUnit": {
        **_FAULT,
        "scratch__addr": "scratch__valid",
        "scratch__data": After(READ_LATENCY, ("scratch__valid", "scratch__ready")),
    },
    "TableLookup": {"results": After(TableLookup.LATENCY, ("valid",))},
    "TileLoops": {},
    "TilePlanner": {
        "plan": SAME,
        "captured": "capture",
        **dict.fromkeys(
            (f"tile__{name}" for name in ("line", "base", "length", "first", "last", "continues")), _tile_is_ready
        ),
        "tile__start": _tile_starts_anew,
    },
    "WaitChecker": {},
    "Watchdog": {"port__fault": UNSEEN},
    "WeightFetcher": {"read_address": "read_valid", "to_sum": any_of("to_sum", WEIGHTS_TO_SUM, "valid")},
    "WeightMemory": {"read__data": After(WEIGHT_LATENCY, ("read__valid",)), **_PARITY},
    "WindowWalker": {},
    "WordAssembler": {"result": UNSEEN},
    "WordDecoder": {},
    "ZeroPointCorrection": {"corrections": corrections_stored},
    "ZeroPoints": {"weights": _zero_points_stored},
    "mac.ResultWriter": {**_WRITE, "fault_index": "fault"},
    "mac.Sequencer": {
        **dict.fromkeys(("pixel", "first_tile", "continued", "strip_length"), "active"),
        "instruction": _instruction_was_current,
    },
    # `hazard` compares with addresses of before the reset until as many have followed: it delays a read, no more.
    "vector.ResultWriter": {**_WRITE, "hazard": UNSEEN},
    "vector.Sequencer": {
        "operation": once("unit__started"),
        **_FAULT,
    },
}
"""Components with a proof, and when their ports count, besides payloads of streams.

Of some components the proof is about all outputs but the data, `UNSEEN`: when they are valid, and what is accepted.
Their data follows requirements on the order of inputs, or contents of memories that are too large for the method.
"""

REQUIRED: dict[str, list[Rule]] = {
    "AccumulatorReadout": [
        Held("descriptors"),
        Only("epilogue_idle", once("item"), idle=1),
        Only("strip_ready", _strip_has_ended),
    ],
    "ConstantCheck": [Only("issue", _has_space), Only("last", _ends_after_its_issue)],
    "DepthwiseConstants": [Only("valid", once("start"))],
    "LoopSetup": [Held("descriptors")],
    "OutputWalker": [Only("start", _walk_is_shown)],
    "ProgramCheck": [Only("valid", _word_counts)],
    "RequantizerLane": [Shifted("enable")],
    "TilePlanner": [
        Only("plan__same", _plan_may_differ, idle=1),
        Kept("plan", _plan_may_change),
        Only("start", _may_start),
        Only("step", _may_step),
    ],
    "mac.ResultWriter": [Held("descriptors")],
}
"""What components require of their inputs."""

PROMISED: dict[str, list[Rule]] = {
    "OutputWalker": [Only("o__valid", once("start"))],
    "TilePlanner": [Is("ready", no_tile_in_work), Kept("finished", _end_may_change)],
}
"""What components promise of their outputs."""


LEMMAS: dict[str, Lemmas] = {
    "ChannelStore": of_channel_store,
    "Dispatch": of_dispatch,
    "Divider": by_itself,
    "RunWalker": of_run_walker,
    "TilePlanner": of_tile_planner,
    "ZeroPointCorrection": of_zero_point_correction,
    "mac.Sequencer": of_sequencer,
}
"""What is proved of signals inside components."""

LONG_PIPELINES = {"ChannelStore": 12, "Divider": 12, "ZeroPointCorrection": 18}
"""Components whose lemmas have to hold in more cycles before the next one: those that a word takes through them."""

UNMERGED = {"Accumulators", "InstructionDecoder", "OperandFetcher", "vector.Sequencer"}
"""Components whose proof is shorter than the search for equal parts."""

INSIDE = {
    **dict.fromkeys(("AccumulatorReadout", "mac.ResultWriter"), ("OutputWalker",)),
    "DepthwiseEpilogue": ("RequantizerLane",),
    "Dispatch": ("InstructionChecker", "ProgramCheck"),
    "MoveFrontEnd": ("RunWalker", "BurstSplitter", "CreditFifo", "AddressWalker"),
    "StoreUnit": ("MoveFrontEnd", "CreditFifo", "SkidBuffer"),
    "mac.Sequencer": ("TilePlanner",),
}
"""Components whose proof is about their own logic, and rests on that of those inside it."""


def rules_of(name: str) -> Rules:
    """All of it."""
    return Rules(
        PROVED[name],
        REQUIRED.get(name, ()),
        PROMISED.get(name, ()),
        LEMMAS.get(name, no_lemmas),
        LONG_PIPELINES.get(name, Rules.cycles),
        name not in UNMERGED,
    )


ON_4_ROWS_AND_COLUMNS = {"MacArray"}
"""With more of them the search comes to no end."""

NOT_PROVED = {
    "what its parts require follows from words in FIFOs, which the method does not know": {
        "Engine", "LoadUnit", "MacUnit", "VectorUnit",
    },
}  # fmt: skip
"""Reasons why a component has no proof here: it is simulated, alone and in the accelerator."""
