"""Wishbone B4 as a signature, 32 data bits wide, with the members that VexRiscv's buses have."""

from enum import IntEnum

from amaranth.lib.wiring import In, Out, Signature

ADDRESS_BITS = 30
"""Addresses count words of four bytes."""
DATA_BITS = 32
LINE_BYTES = 32
"""Bytes of a line of VexRiscv's caches: a burst reads one line."""


class CycleType(IntEnum):
    """Cycle type identifiers (Wishbone B4, 4.2)."""

    CLASSIC = 0b000
    INCREMENTING = 0b010
    END_OF_BURST = 0b111


class Wishbone(Signature):
    """A Wishbone interface from the master's side.

    An access is in progress while `cyc` and `stb` are high. The slave ends it with `ack` for one cycle; until then
    the master keeps its outputs. There is no `err`: VexRiscv ignores it. A read with `cti` INCREMENTING starts a burst
    over one cache line, from the line's first word on; `cyc` and `stb` stay high until its last `ack`.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "cyc": Out(1),
                "stb": Out(1),
                "we": Out(1),
                "adr": Out(ADDRESS_BITS),
                "sel": Out(DATA_BITS // 8),
                "cti": Out(3),
                "dat_w": Out(DATA_BITS),
                "dat_r": In(DATA_BITS),
                "ack": In(1),
            }
        )

    def __repr__(self) -> str:
        return "Wishbone()"
