"""Instructions VDEPTHWISE whose results depend on the highest bit of a field."""

from collections.abc import Iterator

from intloom.hw.spec.fields import SCRATCH_BITS
from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.vector_depthwise import constant_words
from tests.sim.random_programs import extremes as x
from tests.sim.random_programs.results import HIGH, Results

DEPTHWISE = {"a_base": 1000, "in_h": 9, "in_w": 400, "a_row": 300, "out_w": 3}
DEPTHWISE["b_base"] = x.DEPTHWISE_END - constant_words(1, 3)


def depthwise_steps(results: Results) -> Iterator[tuple[str, Instruction]]:
    """Each with the field that it is for."""

    def depthwise(kernel_h: int = 1, kernel_w: int = 3, **fields: int) -> Instruction:
        base = DEPTHWISE | {"b_base": x.DEPTHWISE_END - constant_words(kernel_h, kernel_w)}
        return results.make(Kind.VDEPTHWISE, **base | fields, kernel_h=kernel_h, kernel_w=kernel_w)

    half = 1 << SCRATCH_BITS - 1
    large = {"in_h": 16_000, "in_w": 16_000, "a_row": 1, "out_w": 1}
    yield "out_h", depthwise(**large, out_h=8193, out_row=1)
    yield "out_w", depthwise(**large | {"out_w": 8193})
    yield "out_row", depthwise(out_h=2, out_row=(1 << 15) + 7, out_base=results.rows())
    yield "out_x", depthwise(out_x=11)
    yield "out_base", depthwise(out_base=results.high())
    yield "a_base", depthwise(a_base=half + 1000, a_row_off=half + 5)
    yield "a_row_off", depthwise(a_base=half + 1000, a_row_off=half + 5)
    # Row iy0 lies outside, so only its successor's offset, behind the ring's end, is an address.
    yield "a_ring", depthwise(2, iy0=-1, a_row_off=half, a_row=20, a_ring=half + 5)
    yield "a_row", depthwise(2, a_row=(1 << 15) + 7)
    yield "in_h", depthwise(in_h=8200, iy0=8195, a_row_off=9)
    yield "in_w", depthwise(in_w=8200, ix0=8195)
    for first in (-1, 8195):
        yield "iy0", depthwise(2, in_h=9000, iy0=first, a_row_off=-300 % (1 << SCRATCH_BITS) if first < 0 else 9)
        yield "ix0", depthwise(in_w=9000, ix0=first)
    yield "kernel_h", depthwise(9)
    yield "kernel_w", depthwise(1, 5)
    yield "stride_h", depthwise(stride_h=4, out_h=2, out_row=3)
    yield "stride_w", depthwise(stride_w=4)
    yield "b_base", depthwise(b_base=HIGH + 200)
