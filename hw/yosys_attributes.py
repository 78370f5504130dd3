"""Attributes of registers and memories that reach the Verilog, for synthesis with Yosys."""

LUT_PRODUCT = "lut_product"
"""Register of a partial product that `hw.fpga` maps to carry chains or look-up tables instead of a DSP block.

With another flow, `proc; flatten; opt_clean; booth a:lut_product %ci3 t:$mul %i` makes adders of these products.
"""
REGISTER_COPY = "register_copy"
"""Duplicate register that synthesis must not merge with its copies: it shortens a high fan-out net."""
NO_RW_CHECK = "no_rw_check"
"""Memory in which no address is read and written in one cycle: synthesis adds no bypass logic."""
RAM_STYLE = "ram_style"
"""Memory that synthesis is to put into look-up tables, `distributed`."""
KEPT_ATTRIBUTES = (LUT_PRODUCT, NO_RW_CHECK, RAM_STYLE, REGISTER_COPY)

NO_COLLISIONS: dict[str, int | str] = {NO_RW_CHECK: 1}
IN_LUTS: dict[str, int | str] = {RAM_STYLE: "distributed"}
