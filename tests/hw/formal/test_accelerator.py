"""AXI's rules at the port of the whole accelerator, from reset on, whatever its program, software and memory do.

Run control, fetch, loads, stores, the arbiter, the window and the connections are the RTL. All other components are
replaced by free ones, which may do anything in any cycle: registers, dispatch, queues, both memories, MAC and vector
unit. So the result holds for all that the real ones do. What is assumed of them: a move on offer stays until it is
taken or the engine is reset, and its counts are not 0, as dispatch checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest
from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Fragment, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring

from intloom.hw import engine, npu
from intloom.hw.bus.axi4 import BOUNDARY_BYTES, CHANNELS
from intloom.hw.npu import Npu
from intloom.hw.spec.isa import BY_KIND, Kind, Unit
from intloom.hw.spec.params import preset
from tests.hw.formal.order import BurstsInFlight, Free, assume_stream_holds, free_inputs
from tests.hw.formal.planted import each_night, planted
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
PARAMS = preset("nano").replace(axi_burst=4, axi_outstanding=2, queue_depth=2, clock_gating=False, trace=False)
_FREE = {
    engine: ("MacUnit", "VectorUnit", "Scratchpad", "WeightMemory", "Dispatch", "WaitChecker", "Watchdog"),
    npu: ("Registers", "Counters", "Outstanding"),
}
_COUNTS = ("n0", "n1", "n2")


class FreeQueues(Free):
    """Queues that offer any moves."""

    def elaborate(self, platform: object) -> Module:
        """What dispatch and the queues ensure."""
        m = super().elaborate(platform)
        for unit, kind in ((Unit.LOAD, Kind.LOAD), (Unit.STORE, Kind.STORE)):
            offered, spec = self.o[unit], BY_KIND[kind]
            assume_stream_holds(m, offered.valid, offered.ready, offered.payload)
            for name in _COUNTS:
                first = spec.offsets[name]
                m.d.comb += Assume(offered.payload.instruction[first : first + spec.field(name).width] != 0)
        return m


def _freed(component: Callable[..., wiring.Component], free: type[Free] = Free) -> Callable[..., Free]:
    return lambda *arguments: free(component(*arguments))


class Bench(Elaboratable):
    """The accelerator with free components."""

    def __init__(self, *changes: tuple[str, str]) -> None:
        self.changes = changes
        """Planted in the top level."""

    def _accelerator(self) -> tuple[Npu, Fragment]:
        with ExitStack() as stack:
            for module, names in _FREE.items():
                for name in names:
                    stack.enter_context(patch.object(module, name, _freed(getattr(module, name))))
            queues = _freed(engine.InstructionQueues, FreeQueues)
            stack.enter_context(patch.object(engine, "InstructionQueues", queues))
            top = planted(Npu, *self.changes)(PARAMS)
            return top, Fragment.get(top, None)

    def elaborate(self, platform: object) -> Module:
        """Any slave that keeps AXI's rules; a breach of the master's is remembered."""
        m = Module()
        top, m.submodules.npu = self._accelerator()
        m.d.comb += [*free_inputs(top), Assume(~ResetSignal())]
        channels = {name: _channel(top, name) for name in CHANNELS}
        fires = {name: valid & ready for name, (valid, ready, _) in channels.items()}
        reads, writes, responses = (
            BurstsInFlight(m, "reads"),
            BurstsInFlight(m, "writes"),
            Signal(range(BurstsInFlight.CAPACITY + 1)),
        )
        reads.follow(fires["ar"], top.m_axi_arlen, fires["r"])
        writes.follow(fires["aw"], top.m_axi_awlen, fires["w"])
        m.d.sync += responses.eq(responses + (fires["w"] & top.m_axi_wlast) - fires["b"])
        for name in ("r", "b"):
            assume_stream_holds(m, *channels[name])
        m.d.comb += [
            Assume(~top.m_axi_rvalid | ((reads.count != 0) & (top.m_axi_rlast == reads.is_last))),
            Assume(~top.m_axi_bvalid | (responses != 0)),
        ]
        breaches = [*_moved_offers(m, top), *_illegal_bursts(top)]
        breaches += [
            top.m_axi_wvalid & ((writes.count == 0) | (top.m_axi_wlast != writes.is_last)),
            (reads.count > PARAMS.axi_outstanding) | (writes.count + responses > BurstsInFlight.CAPACITY),
        ]
        broken, breach = Signal(), Signal()
        m.d.comb += [breach.eq(Cat(breaches).any()), Assert(~(broken | breach))]
        m.d.sync += broken.eq(broken | breach)
        return m


def _channel(top: Npu, name: str) -> tuple[Value, Value, Value]:
    """VALID, READY, and all other signals of a channel."""
    prefix = f"m_axi_{name}"
    signals = {n.removeprefix(prefix): getattr(top, n) for n in top.signature.members if n.startswith(prefix)}
    valid, ready = signals.pop("valid"), signals.pop("ready")
    return valid, ready, Cat(signals.values())


def _moved_offers(m: Module, top: Npu) -> Iterator[Value]:
    """What is on offer was on offer and is not, or is another."""
    for name in ("ar", "aw", "w"):
        valid, ready, payload = _channel(top, name)
        waits, offered = Signal(name=f"{name}_waits"), Signal(len(payload), name=f"{name}_offered")
        m.d.sync += [waits.eq(valid & ~ready), offered.eq(payload)]
        yield waits & ~(valid & (payload == offered))


def _illegal_bursts(top: Npu) -> Iterator[Value]:
    """A burst that is too long, or crosses a boundary."""
    size = (PARAMS.word_bytes - 1).bit_length()
    for name in ("ar", "aw"):
        valid, address, length = (getattr(top, f"m_axi_{name}{part}") for part in ("valid", "addr", "len"))
        last = (address % BOUNDARY_BYTES) + (length << size)
        yield valid & ((last >= BOUNDARY_BYTES) | (length >= PARAMS.axi_burst))


_CYCLES, _NIGHTLY = 9, 14


@pytest.mark.parametrize("cycles", [_CYCLES, pytest.param(_NIGHTLY, marks=pytest.mark.nightly)])
def test_the_port_keeps_axis_rules(cycles: int, tmp_path: Path) -> None:
    result = prove(Bench(), tmp_path, depth=cycles, first=cycles - 1)
    assert result.holds, result.log


_FAULTS = {
    "reset in a halt": ("ResetSignal() | run_control.clear)", "ResetSignal() | run_control.halt)"),
}


@pytest.mark.parametrize("fault", each_night(_FAULTS))
def test_a_faulty_accelerator_is_refuted(fault: str, tmp_path: Path) -> None:
    assert not prove(Bench(_FAULTS[fault]), tmp_path, depth=_CYCLES, first=_CYCLES - 1).holds
