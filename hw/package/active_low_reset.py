"""A wrapper of the accelerator with an active-low reset that may be asserted without a clock, as on AXI's `ARESETn`."""

from amaranth.hdl import Shape
from amaranth.lib.wiring import Out

from intloom.hw.npu import TOP_NAME, npu_members
from intloom.hw.spec.params import HardwareParams

WRAPPER = f"{TOP_NAME}_aresetn"

_TEXT = """\
// {wrapper}: `{top}` with the reset `aresetn`, active low. It may be asserted at any time; it takes effect at the next
// edges of `clk` and ends after two edges; a register access before that is lost. All other ports are those of `{top}`.
module {wrapper}(
  input wire clk,
  input wire aresetn,
{ports}
);
  (* ASYNC_REG = "TRUE" *) reg [1:0] released = 2'b00;
  always @(posedge clk or negedge aresetn)
    if (!aresetn) released <= 2'b00;
    else released <= {{released[0], 1'b1}};

  {top} {top} (
    .clk(clk),
    .rst(!released[1]),
{connections}
  );
endmodule
"""


def render_active_low_reset(params: HardwareParams) -> str:
    """Render the wrapper's Verilog."""
    ports, connections = [], []
    for name, member in npu_members(params).items():
        width = Shape.cast(member.shape).width
        direction = "output" if member.flow is Out else "input"
        ports.append(f"  {direction} wire {f'[{width - 1}:0] ' if width > 1 else ''}{name}")
        connections.append(f"    .{name}({name})")
    return _TEXT.format(wrapper=WRAPPER, top=TOP_NAME, ports=",\n".join(ports), connections=",\n".join(connections))
