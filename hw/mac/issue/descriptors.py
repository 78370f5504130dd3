"""Descriptors: the fields of a CONV instruction that each part of the MAC unit needs.

Each part has its own descriptor stream, so that weight fetch may be one instruction ahead of the pixels and readout one
behind.
"""

from amaranth.hdl import Cat, Shape, Value
from amaranth.lib import data

from intloom.hw.decode import field_shape, instruction_layout
from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, WEIGHT_ADDRESS_BITS, Kind, TableUse
from intloom.hw.spec.params import HardwareParams

PIXELS_BITS = 28
"""Width of out_h * out_w."""
STRIPS_BITS = PIXELS_BITS - 4
"""Width of the number of strips: an accumulator bank has at least 16 sums."""
LOW_PIXELS_BITS = 8
"""Bits of the number of pixels that tell how many pixels the last strip lacks: a strip has at most 256."""

CONV = instruction_layout(Kind.CONV)


def _fields(*names: str) -> dict[str, Shape]:
    spec = BY_KIND[Kind.CONV]
    return {name: field_shape(spec.field(name)) for name in names}


_LOOPS = _fields("kernel_h", "kernel_w", "in_blocks", "out_blocks")

WEIGHT_DESCRIPTOR = data.StructLayout(
    {
        **_LOOPS,
        **_fields("weight_zero_points", "zp_in", "subtract_zp_in"),
        "strips": STRIPS_BITS,
        "address": WEIGHT_ADDRESS_BITS,
        "first_tile": WEIGHT_ADDRESS_BITS,
        "load_table": 1,
        "load_residual": 1,
    }
)
"""For the weight fetcher: `address` of the constants, `first_tile` of the first weight tile or its zero points."""

PIXEL_DESCRIPTOR = data.StructLayout(
    {
        **_LOOPS,
        **_fields("in_base", "in_row_off", "in_ring", "in_plane", "in_row", "in_block_step", "in_h", "in_w"),
        **_fields("iy0", "ix0", "stride_h", "stride_w", "dilation_h", "dilation_w", "zp_in", "out_w"),
        **_fields("continue_sums"),
        "packed": 1,
        "low_pixels": LOW_PIXELS_BITS,
        "strips": STRIPS_BITS,
        "index": COUNT_BITS,
    }
)
"""For loop setup and the sequencer."""

READOUT_DESCRIPTOR = data.StructLayout(
    {
        **_fields("out_h", "out_w", "out_blocks", "subtract_zp_in", "zp_out", "table"),
        **_fields("residual", "res_base", "res_plane", "res_row", "res_shift", "res_even"),
        "index": COUNT_BITS,
    }
)
"""For the accumulator readout."""

WRITE_DESCRIPTOR = data.StructLayout(
    {
        **_fields("out_h", "out_w", "out_blocks", "out_base", "out_plane", "out_row", "out_x", "out_lane"),
        "index": COUNT_BITS,
    }
)
"""For the result writer."""


def strip_count(params: HardwareParams, pixels: Value) -> Value:
    """Strips of an output of `pixels` pixels."""
    return (pixels + (params.strip - 1)) >> (params.strip.bit_length() - 1)


def pack_descriptor(layout: data.StructLayout, conv: data.View, **extra: Value) -> Value:
    """The bits of a descriptor: members named in `extra`, the others from the instruction's fields of the same name."""
    bits = []
    for name, field in layout:
        value = extra.get(name, conv[name] if name in CONV.members else None)
        if value is None:
            raise KeyError(name)
        shape = Shape.cast(field.shape)
        bits.append(_fit(value, shape))
    return Cat(*bits)


def _fit(value: Value, shape: Shape) -> Value:
    """The value truncated or extended to the shape's width."""
    value = Value.cast(value)
    if len(value) >= shape.width:
        return value[: shape.width]
    return Cat(value, (value[-1] if value.shape().signed else Value.cast(0)[:1]).replicate(shape.width - len(value)))


def constant_words(params: HardwareParams, conv: data.View) -> Value:
    """Words before the first block's tiles: table, residual constants, channel parameters."""
    table = (conv.table == TableUse.LOAD).replicate(params.table_words.bit_length()) & params.table_words
    residual = conv.residual.replicate(params.residual_words.bit_length()) & params.residual_words
    return table + residual + params.channel_words
