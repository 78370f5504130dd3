"""The accelerator alone on a chip: a clock from a pin on a global net, and buses that end in registers.

An accelerator has far more ports than a package has pins, and nextpnr leaves the clock of a design without pins to
common wires, which spoils both routing and timing. So a shift register feeds all inputs, and all outputs go through
registers into a tree of exclusive ors: every path of the accelerator begins and ends as it would in a larger design.
"""

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.npu import TOP_NAME, npu_members
from intloom.hw.spec.params import HardwareParams

HARNESS_NAME = "chip"
_FAN_IN = 4
"""Inputs of ECP5's look-up tables: a level of the tree takes one table and one register for so many bits."""


class Harness(wiring.Component):
    """Registers around the accelerator for timing analysis: a device has too few pins for its ports.

    A shift register drives all inputs, and a pipelined XOR tree folds all outputs into one pin, so that no path ends at
    a pin and no logic is removed. The accelerator is an instance of its Verilog module.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    serial_in
        Shifted through all of the accelerator's inputs.
    serial_out
        The parity of all of its outputs.

    Handshake
    ---------
    None.

    Timing
    ------
    One input bit per cycle; the tree has one register per level of 4 inputs, after one that captures the outputs.

    Requirements
    ------------
    None: it is placed and routed, not operated.

    Reset and faults
    ----------------
    Its own registers have no reset; the accelerator's reset passes one register. No faults.
    """

    def __init__(self, params: HardwareParams) -> None:
        super().__init__({"serial_in": In(1), "serial_out": Out(1)})
        self._ports = npu_members(params)

    def elaborate(self, platform: object) -> Module:
        """Registers around the accelerator, none of them with a reset."""
        m = Module()
        wires = {name: Signal(member.shape, name=name) for name, member in self._ports.items()}
        inputs = Cat(wire for name, wire in wires.items() if self._ports[name].flow is In)
        outputs = Cat(wire for name, wire in wires.items() if self._ports[name].flow is Out)
        chain = Signal(len(inputs), reset_less=True)
        reset = Signal(reset_less=True)
        m.d.sync += [chain.eq(Cat(self.serial_in, chain)), reset.eq(ResetSignal())]
        m.d.comb += [inputs.eq(chain), self.serial_out.eq(_folded(m, outputs))]
        ends = {f"{'i' if self._ports[name].flow is In else 'o'}_{name}": wire for name, wire in wires.items()}
        m.submodules.npu = Instance(TOP_NAME, i_clk=ClockSignal(), i_rst=reset, **ends)
        return m


def _folded(m: Module, bits: Value) -> Value:
    """All bits in one, a register after every level."""
    # Without this level a path from the accelerator would end behind a gate of the tree.
    level = Signal(len(bits), reset_less=True, name="captured")
    m.d.sync += level.eq(bits)
    while len(level) > 1:
        parts = [level[start : start + _FAN_IN].xor() for start in range(0, len(level), _FAN_IN)]
        level = Signal(len(parts), reset_less=True, name=f"level_{len(parts)}")
        m.d.sync += level.eq(Cat(parts))
    return level


def generate_harness(params: HardwareParams) -> str:
    """The harness as RTLIL with top module `chip`, for Yosys to read beside the accelerator's Verilog."""
    text: str = rtlil.convert(Harness(params), name=HARNESS_NAME, emit_src=False)
    return text
