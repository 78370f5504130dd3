"""The window: the memory that a program may address, latched when it starts."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.dma.runs import word_address_bits
from intloom.hw.ports import WindowPort
from intloom.hw.spec.isa import DRAM_BITS
from intloom.hw.spec.params import HardwareParams


class Window(wiring.Component):
    """Latches the registers BASE and LIMIT at the start of a program, and adds them.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    base, limit
        The registers: a word address, and a number of words.
    update
        No program runs: follow the registers.
    latched
        The window of the program.

    Handshake
    ---------
    None.

    Timing
    ------
    From `base` and `limit` to `latched`, while `update` is high: `LATENCY` = 1 cycle.

    Requirements
    ------------
    `update` is high in the cycle before a program's launch, and low from the launch on.

    Reset and faults
    ----------------
    No reset: `latched` counts only from a launch on. No faults: `Fetch` checks `latched.wraps`.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(
            {
                "base": In(word_address_bits(params)),
                "limit": In(DRAM_BITS),
                "update": In(1),
                "latched": Out(WindowPort(params)),
            }
        )

    @staticmethod
    def model(base: int, limit: int, params: HardwareParams) -> dict[str, int]:
        """The window of these registers."""
        space = 1 << word_address_bits(params)
        end = base + limit
        return {"base": base, "end": end % (2 * space), "limit": limit, "wraps": int(end > space)}

    def elaborate(self, platform: object) -> Module:
        """Registers, and the comparison of the sum with the size of the address space."""
        m = Module()
        bits = len(self.base)
        base, limit = Signal.like(self.base, reset_less=True), Signal.like(self.limit, reset_less=True)
        # As wide as the larger operand, and the carry.
        end = Signal(max(bits, DRAM_BITS) + 1, reset_less=True)
        with m.If(self.update):
            m.d.sync += [base.eq(self.base), limit.eq(self.limit), end.eq(self.base + self.limit)]
        m.d.comb += [
            self.latched.base.eq(base),
            self.latched.limit.eq(limit),
            self.latched.end.eq(end),
            self.latched.wraps.eq(end[bits + 1 :].any() | (end[bits] & end[:bits].any())),
        ]
        return m
