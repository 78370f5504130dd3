"""Unbounded proof about the watchdog for every limit of 32 bits: it raises its fault after the limit, never before."""

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Elaboratable, Module, Signal, Value

from intloom.hw.control.watchdog import LIMIT_BITS, Watchdog
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow


class WatchdogBench(Elaboratable):
    """Any progress and any limit; `early` claims that the fault comes so many cycles before it does."""

    def __init__(self, early: int = 0) -> None:
        self.early = early

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dog = dog = Watchdog()
        limit = Signal(LIMIT_BITS)
        m.d.comb += [
            limit.eq(AnyConst(LIMIT_BITS)),
            dog.limit.eq(limit),
            dog.running.eq(AnySeq(1)),
            dog.progress.eq(AnySeq(1)),
            Value.cast(dog.candidates).eq(AnySeq(len(Value.cast(dog.candidates)))),
        ]
        # Cycles in succession without progress, up to the cycle before the present one.
        idle, expected, loaded = Signal(LIMIT_BITS + 1), Signal(), Signal()
        m.d.sync += [
            loaded.eq(1),
            idle.eq(0),
            expected.eq(expected | (loaded & (limit != 0) & (idle + self.early > limit))),
        ]
        with m.If(dog.quiet):
            m.d.sync += idle.eq(idle + 1)
        m.d.comb += [
            Assert(dog.port.valid == expected),
            # What induction has to know.
            Assert(~loaded | ((dog.left + idle)[: LIMIT_BITS + 1] == limit)),
            Assert(expected | (limit == 0) | (idle <= limit + 1)),
            Assert(loaded | (idle == 0)),
            Assert(~loaded | (dog.set_limit == (limit != 0))),
            Assert(loaded | ~expected),
        ]
        return m


def test_a_fault_comes_after_every_limit(tmp_path: Path) -> None:
    result = prove(WatchdogBench(), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


def test_another_limit_is_refuted(tmp_path: Path) -> None:
    assert not prove(WatchdogBench(early=1), tmp_path, depth=6).holds
