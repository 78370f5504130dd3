"""Soft reset equals reset, component by component: what no reset clears is never seen on a valid output.

`clearing.py` states the property. ABC proves it (`copies.py`), or for some components an induction of our own. The list
of components comes from elaboration; one without a proof has its reason here.
"""

import inspect
import sys
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from amaranth.hdl import Fragment
from amaranth.lib import wiring

from intloom.hw.control.fetch import Fetch
from intloom.hw.engine import Engine
from intloom.hw.mac.array.product import OneModule
from intloom.hw.vector import softmax
from intloom.hw.vector.depthwise_epilogue import DepthwiseEpilogue
from tests.hw.formal.clearing import UNSEEN, Pairs, clears
from tests.hw.formal.copies import always_equal
from tests.hw.formal.planted import each_night, planted
from tests.support.nightly import with_nightly
from tests.support.shapes import SHAPES

pytestmark = [pytest.mark.slow, pytest.mark.needs("yosys")]
SHAPE = SHAPES["whole"]

PROVED: dict[str, Pairs] = {
    "AddressWalker": {},
    "AffineLane": {"result": UNSEEN},
    "ByteTable": {"result": UNSEEN},
    "ClockEnable": {},
    "ConstantSets": {},
    "CreditFifo": {},
    "Datapath": {"result": UNSEEN},
    "DepthwiseColumns": {"sums": UNSEEN},
    "DepthwiseEpilogue": {"result": "result_valid"},
    "DepthwiseWalker": {"o__payload": UNSEEN},
    "Divider": {"quotient": "result_valid"},
    "Epilogue": {"results": UNSEEN},
    "FaultLatch": {"latched__fault": "latched__valid"},
    "Fetch": {},
    "InstructionChecker": {},
    "InstructionDecoder": {},
    "Norm": {"result": UNSEEN},
    "NormFactors": {"result": UNSEEN},
    "OperandStage": {"x1": UNSEEN, "x2": UNSEEN},
    "OutputWalker": {},
    "PixelFetcher": {
        "act0__addr": "act0__valid",
        "act1__addr": "act1__valid",
        "word": "word_valid",
        "swap": "word_valid",
        "fault_index": "fault",
    },
    "Pool": {"maximum": UNSEEN, "total": UNSEEN},
    "ProgramCheck": {},
    "RasterWalker": {},
    "ReadArbiter": {},
    "ResidualAdder": {"sums": UNSEEN},
    "RunWalker": {"o__payload": UNSEEN},
    "SkidBuffer": {},
    "Slicer": dict.fromkeys(("slice_a", "slice_b", "slice_tap", "index", "byte", "byte_position", "group"), UNSEEN),
    "Softmax": {"result": UNSEEN},
    "TileLoops": {},
    "WaitChecker": {},
    "Watchdog": {"port__fault": UNSEEN},
    "WindowWalker": {},
    "WordAssembler": {"result": UNSEEN},
    "WordDecoder": {},
}
"""Components with a proof, and their ports that count only while another one is high, besides payloads of streams.

Of some components the proof is about all outputs but the data, `UNSEEN`: when they are valid, and what is accepted.
Their data follows requirements on the order of inputs, or contents of memories that are too large for the method.
"""

REGISTERED = {"OutputWalker": {"start"}}
"""Inputs that are low in the first cycle after a reset, by the requirements: registers with a reset drive them."""

BY_INDUCTION = {"DepthwiseEpilogue", "Divider", "Norm", "NormFactors", "RunWalker"}
"""Components on which ABC takes too long."""

NOT_PROVED = {
    "no output tells when its data is valid: the sender counts the cycles": {
        "AccumulatorMemory", "Accumulators", "AffineConstants", "Bank", "ChannelStore", "LutProduct", "MacArray",
        "ParityChecker", "RasterSetup", "RequantizerLane", "ScaleNormalizer", "TableLookup", "ZeroPointCorrection",
        "ZeroPoints",
    },
    "contains a memory of too many bits": {"Scratchpad", "WeightMemory"},
    "outputs rest on requirements on the order of inputs": {
        "AccumulatorReadout", "BurstSplitter", "ConstantCheck", "ConstantsLoader", "DepthwiseConstants",
        "InstructionQueues", "LoopSetup", "OperandFetcher", "ResultWriter", "Sequencer", "TilePlanner",
        "WeightFetcher",
    },
    "too large for one proof": {
        "Dispatch", "Engine", "LoadUnit", "MacUnit", "MoveFrontEnd", "StoreUnit", "VectorUnit",
    },
}  # fmt: skip
"""Reasons why a component has no proof here: it is simulated, alone and in the accelerator."""


@cache
def components(shape: str) -> dict[str, tuple[type[wiring.Component], dict[str, Any]]]:
    """Each kind of component of the engine with the arguments of its first instance."""
    elaborated: set[str] = set()
    made: dict[str, tuple[type[wiring.Component], dict[str, Any]]] = {}

    def call(frame: FrameType, event: str, _: object) -> None:
        # Python makes a new dictionary at each use of `f_locals`.
        if frame.f_code.co_name not in ("__init__", "elaborate"):
            return
        component = frame.f_locals.get("self")
        if not isinstance(component, wiring.Component):
            return
        kind = type(component)
        if frame.f_code.co_name == "elaborate":
            elaborated.add(kind.__name__)
        elif kind.__name__ not in made and frame.f_code is kind.__init__.__code__:
            names = inspect.getargvalues(frame).args[1:]
            made[kind.__name__] = kind, {name: frame.f_locals[name] for name in names}

    before = sys.gettrace()
    sys.settrace(call)
    try:
        Fragment.get(Engine(SHAPES[shape]), OneModule(arrays=False) if shape == "bytes" else None)
    finally:
        sys.settrace(before)
    # Memories are Amaranth's own.
    return {name: made[name] for name in elaborated if name in made and name != "Memory"}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_component_has_a_proof_or_a_reason(shape: str) -> None:
    listed = [*PROVED, *(name for names in NOT_PROVED.values() for name in names)]
    assert len(listed) == len(set(listed))
    assert not components(shape).keys() - set(listed)


@pytest.mark.parametrize("shape", with_nightly(SHAPES, SHAPES.keys() - {"whole"}))
@pytest.mark.parametrize("name", with_nightly(PROVED, {"DepthwiseEpilogue"}))
def test_soft_reset_equals_reset(name: str, shape: str, tmp_path: Path) -> None:
    if name not in components(shape):
        pytest.skip("the shape does not have this component")
    kind, arguments = components(shape)[name]
    proves = clears if name in BY_INDUCTION else always_equal
    assert proves(kind(**arguments), PROVED[name], tmp_path, REGISTERED.get(name, ()))


def _uncleared(source: Any, count: str) -> Any:
    """The class or function with this counter, of groups in a slice, without a reset."""
    return planted(source, (count, count.removesuffix(")") + ", reset_less=True)"))


@pytest.mark.nightly
def test_a_counter_that_is_not_cleared_is_found(tmp_path: Path) -> None:
    """With one group a slice nothing would show it."""
    faulty = _uncleared(DepthwiseEpilogue, "count = Signal(range(max(2, self._slice_groups)))")
    assert not clears(faulty(SHAPE), PROVED["DepthwiseEpilogue"], tmp_path)


def test_a_counter_that_is_not_cleared_is_found_by_valid_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty = _uncleared(softmax.collect_groups, 'count = Signal(range(max(2, groups)), name="groups_collected")')
    monkeypatch.setattr(softmax, "collect_groups", faulty)
    assert not clears(softmax.Softmax(SHAPE), PROVED["Softmax"], tmp_path)
    assert not always_equal(softmax.Softmax(SHAPE), PROVED["Softmax"], tmp_path)


FETCH_FAULTS = {
    "pointer": (
        "tail, head = Signal(index_bits + 1), Signal",
        "tail, head = Signal(index_bits + 1, reset_less=True), Signal",
    ),
    "space": ("init=blocks)", "init=blocks, reset_less=True)"),
    "outstanding": (
        "outstanding = Signal(range(blocks + 1))",
        "outstanding = Signal(range(blocks + 1), reset_less=True)",
    ),
}


@pytest.mark.parametrize("fault", each_night(FETCH_FAULTS))
def test_a_fetch_that_is_not_cleared_is_found(fault: str, tmp_path: Path) -> None:
    assert not always_equal(planted(Fetch, FETCH_FAULTS[fault])(SHAPE), PROVED["Fetch"], tmp_path)
