"""The clock enable against its model; a gated component beside one that is always clocked."""

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.clock_gate import GATE_MODULE, ClockEnable, add_gated
from intloom.hw.verilog import CLOCK_GATE
from tests.hw.streams import made, run


def test_the_enable_follows_its_model(rng: random.Random) -> None:
    clock = made(ClockEnable)
    wakes = [rng.random() < rate for rate in (0.0, 0.5, 0.01, 0.2) for _ in range(150)]
    enables: list[bool] = []

    async def bench(ctx: Any) -> None:
        for wake in wakes:
            ctx.set(clock.wake, wake)
            enables.append(bool(ctx.get(clock.enable)))
            await ctx.tick()

    run(clock, bench)
    assert enables == ClockEnable.model(wakes)
    assert 100 < enables.count(False) < 500


class _WithReset(wiring.Component):
    """A clock enable whose reset is a port."""

    def __init__(self) -> None:
        super().__init__({"wake": In(1), "reset": In(1), "enable": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += ClockDomain("sync")
        m.submodules.clock = clock = ClockEnable()
        m.d.comb += [ResetSignal().eq(self.reset), clock.wake.eq(self.wake), self.enable.eq(clock.enable)]
        return m


def test_a_reset_without_work_is_clocked() -> None:
    clock = _WithReset()

    async def bench(ctx: Any) -> None:
        await ctx.tick().repeat(2 * ClockEnable.SETTLE)
        assert not ctx.get(clock.enable)
        ctx.set(clock.reset, 1)
        assert ctx.get(clock.enable), "in the first cycle of the reset"
        await ctx.tick()
        ctx.set(clock.reset, 0)
        for enable in ClockEnable.model([False] * 2 * ClockEnable.SETTLE):
            assert ctx.get(clock.enable) == enable
            await ctx.tick()

    run(clock, bench)


class _Counting(wiring.Component):
    """Two counters of all cycles, one of them in a component that `wake` clocks."""

    def __init__(self) -> None:
        super().__init__({"wake": In(1), "gated": Out(16), "free": Out(16)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for port, wake in ((self.gated, self.wake), (self.free, None)):
            inner = Module()
            count = Signal(16)
            inner.d.sync += count.eq(count + 1)
            m.d.comb += port.eq(count)
            add_gated(m, port.name, inner, wake, platform)
        return m


def test_a_component_without_work_is_not_clocked() -> None:
    counting = _Counting()

    async def bench(ctx: Any) -> None:
        await ctx.tick().repeat(100)
        assert (ctx.get(counting.gated), ctx.get(counting.free)) == (ClockEnable.SETTLE, 100)
        ctx.set(counting.wake, 1)
        await ctx.tick()
        assert ctx.get(counting.gated) == ClockEnable.SETTLE + 1

    run(counting, bench)


_LIBRARY = """
module DCCA(input CLKI, CE, output CLKO);
  reg open = 0;
  always @(CLKI or CE) if (!CLKI) open = CE;
  assign CLKO = CLKI & open;
endmodule
module BUFGCE(input I, CE, output O);
  reg open = 0;
  always @(I or CE) if (!I) open = CE;
  assign O = I & open;
endmodule
"""
"""The clock buffers as their manufacturers describe them: the enable counts while the clock is low."""
_BENCH = """
module bench;
  reg clk = 0, enable = 0;
  wire gated_clk;
  integer cycle;
  reg [0:{last}] enables = {count}'b{enables};
  {gate} dut(.clk(clk), .enable(enable), .gated_clk(gated_clk));
  always @(posedge gated_clk) $write("%0d ", cycle);
  initial begin
    for (cycle = 0; cycle < {count}; cycle = cycle + 1) begin
      #1 enable = enables[cycle]; #1 clk = 1; #1 enable = !enable; #1 clk = 0;
    end
    $finish;
  end
endmodule
"""


@pytest.mark.needs("iverilog")
@pytest.mark.parametrize("form", ["LATCH", "DCCA", "BUFGCE", "NONE"])
def test_every_form_of_the_gate_passes_the_enabled_edges(form: str, tmp_path: Path, rng: random.Random) -> None:
    enables = [rng.getrandbits(1) for _ in range(200)]
    bench = _BENCH.format(
        gate=GATE_MODULE, count=len(enables), last=len(enables) - 1, enables="".join(map(str, enables))
    )
    (tmp_path / "bench.v").write_text(CLOCK_GATE.format(module=GATE_MODULE) + _LIBRARY + bench)
    command = ["iverilog", "-g2005", "-s", "bench", f"-DINTLOOM_CLOCK_GATE_{form}", "-o", "bench", "bench.v"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, capture_output=True, text=True, check=True)
    passed = [int(word) for word in done.stdout.split() if word.isdecimal()]
    assert passed == [i for i, enable in enumerate(enables) if enable or form == "NONE"]
