"""Clock gating: a component's clock stops while it has no work, with equal outputs in every cycle."""

from typing import Any

from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    EnableInserter,
    Instance,
    Module,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array.product import OneModule

GATE_MODULE = "intloom_clock_gate"
"""Name of the gate's module in Verilog; `intloom.hw.verilog` has its forms."""


class ClockEnable(wiring.Component):
    """Keeps a component's clock running while it has work, and until its pipelines have settled.

    Members
    -------
    wake:
        The component has work, or receives some in this cycle.
    enable:
        The clock edge at the end of this cycle reaches the component.

    Handshake
    ---------
    None.

    Timing
    ------
    From `wake` to `enable`: 0 cycles, so that waking up costs none. From the last cycle with `wake` to the last one
    with `enable`: `SETTLE` = 31 cycles.

    Requirements
    ------------
    A component whose `wake` was low for `SETTLE` cycles has outputs that do not change before the next `wake`.

    Reset and faults
    ----------------
    `enable` is high during reset and for `SETTLE` cycles after it. There are no faults.
    """

    SETTLE = 31
    """More than the longest pipeline of any gated component; all bits of the counter are 1."""

    def __init__(self) -> None:
        super().__init__({"wake": In(1), "enable": Out(1)})

    @staticmethod
    def model(wakes: list[bool]) -> list[bool]:
        """`enable` in every cycle after a reset, from `wake` in every cycle."""
        left, enables = ClockEnable.SETTLE, []
        for wake in wakes:
            enables.append(wake or left > 0)
            left = ClockEnable.SETTLE if wake else max(0, left - 1)
        return enables

    def elaborate(self, platform: object) -> Module:
        """A counter of the cycles left; the reset makes its own cycle one with an enable."""
        m = Module()
        left = Signal(range(self.SETTLE + 1), init=self.SETTLE)
        with m.If(self.wake):
            m.d.sync += left.eq(self.SETTLE)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.comb += self.enable.eq(self.wake | (left != 0) | ResetSignal())
        return m


def add_gated(m: Module, name: str, component: Any, wake: Value | None, platform: object) -> None:
    """Add `component` to `m` as a submodule that is clocked only while `wake` is high, and a little longer.

    With `wake` None it is always clocked. In Verilog its clock passes a gate. Elsewhere its registers get an enable: in
    Amaranth's simulator (0.5) a clock that another one drives ticks one delta cycle late.
    """
    if wake is None:
        m.submodules[name] = component
        return
    m.submodules[f"{name}_clock"] = clock = ClockEnable()
    enable = Signal(name=f"{name}_clock_enable")
    m.d.comb += [clock.wake.eq(wake), enable.eq(clock.enable)]
    if not isinstance(platform, OneModule):
        m.submodules[name] = EnableInserter(enable)(component)
        return
    gated = f"{name}_gated"
    m.domains += ClockDomain(gated)
    m.submodules[f"{name}_gate"] = Instance(
        GATE_MODULE, i_clk=ClockSignal(), i_enable=enable, o_gated_clk=ClockSignal(gated)
    )
    m.d.comb += ResetSignal(gated).eq(ResetSignal())
    m.submodules[name] = DomainRenamer(gated)(component)
