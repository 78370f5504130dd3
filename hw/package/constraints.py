"""Timing constraint templates: SDC for ASIC flows, XDC for Vivado, LPF for nextpnr and Diamond."""

DEFAULT_MHZ = 50.0

_COMMON = """{c} Clock and reset of `npu`. Change PERIOD to your clock.
{c} `clk` is the only clock: there are no crossings and no generated clocks inside, so no false paths between clocks.
{c} `rst` is sampled by `clk`: a synchronous reset, active high, which needs a register in your reset logic.
"""
_SDC = """set PERIOD {period:.3f}
create_clock -name clk -period $PERIOD [get_ports clk]
# All other ports belong to AXI interfaces of the same clock. A third of the period stays outside.
set inputs [all_inputs]
set_input_delay [expr $PERIOD / 3.0] -clock clk $inputs
set_output_delay [expr $PERIOD / 3.0] -clock clk [all_outputs]
set_input_delay 0.0 -clock clk [get_ports clk]
"""
_XDC = """# Below a top level of your own the clock is usually constrained already. Then remove these lines.
set PERIOD {period:.3f}
create_clock -name clk -period $PERIOD [get_ports clk]
# The interrupt is a register. If your processor samples it with another clock, it needs a synchronizer there, and then
# this path is false:
# set_false_path -from [get_cells -hierarchical -filter {{NAME =~ *npu/*irq*}}]
"""
_LPF = """FREQUENCY PORT "clk" {mhz:.3f} MHZ;
# Pins of your board, for instance:
# LOCATE COMP "clk" SITE "P3";
# IOBUF PORT "clk" IO_TYPE=LVCMOS33;
BLOCK ASYNCPATHS;
"""


def render_constraints(name: str, mhz: float = DEFAULT_MHZ) -> dict[str, str]:
    """Text of each template by file name."""
    values = {"period": 1000.0 / mhz, "mhz": mhz}
    common = _COMMON.format(c="#")
    return {
        f"{name}.{end}": common + text.format(**values) for end, text in (("sdc", _SDC), ("xdc", _XDC), ("lpf", _LPF))
    }
