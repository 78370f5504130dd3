"""Addresses in a ring of input rows."""

from amaranth.hdl import Cat, Mux, Value

from intloom.hw.spec.isa import SCRATCH_BITS


def minus_ring(offset: int, ring: int) -> int:
    """`offset - ring`, negative for an offset inside the ring: the bits below its sign; 0 without a ring."""
    return (offset - ring) % (1 << SCRATCH_BITS) if ring else 0


def minus_ring_value(offset: Value, ring: Value) -> Value:
    """`minus_ring` in hardware."""
    # A multiplexer with 0 before a register becomes the register's synchronous reset; an AND would take LUTs.
    return Mux(ring != 0, (offset - ring)[:SCRATCH_BITS], 0)


def add_in_ring(a: Value, b: Value, b_minus_ring: Value) -> Value:
    """`a + b` modulo the ring for operands inside it; modulo the address space without a ring.

    `b_minus_ring` is `minus_ring(b)`: both candidate sums are computed in parallel, and the sign of the second selects.
    """
    wrapped = (a + Cat(b_minus_ring, 1))[: SCRATCH_BITS + 1]
    return Mux(wrapped[-1], (a + b)[:SCRATCH_BITS], wrapped[:-1])
