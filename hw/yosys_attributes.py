"""Attributes of registers and memories that reach the Verilog, for synthesis with Yosys."""

LUT_PRODUCT = "lut_product"
"""Register of a partial product that `hw.fpga` maps to carry chains or look-up tables instead of a DSP block.

With another flow, `proc; flatten; opt_clean; booth a:lut_product %ci3 t:$mul %i` makes adders of these products.
"""
REGISTER_COPY = "register_copy"
"""Duplicate register that synthesis must not merge with its copies: it shortens a high fan-out net."""
NO_RW_CHECK = "no_rw_check"
"""Memory in which no address is read and written in one cycle: synthesis adds no bypass logic."""
KEPT_ATTRIBUTES = (LUT_PRODUCT, NO_RW_CHECK, REGISTER_COPY)

NO_COLLISIONS = {NO_RW_CHECK: 1}
