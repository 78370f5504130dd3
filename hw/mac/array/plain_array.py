"""The MAC array as a simulator computes it fastest: whole dot products, then a delay instead of the adder tree.

Verilog that is written here, not generated from `MacArray`: numbers of 32 bits in arrays, which a C++ compiler
computes with vector instructions.
"""

from intloom.hw.mac.array.mac_array import MacArray, dot_bits
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.spec.params import HardwareParams

_FRONT = 2
"""Registers before the products: routing register and multiplier input."""


def plain_array(params: HardwareParams, module: str) -> str:
    """The module with the ports of `MacArray` and its outputs in every cycle."""
    rows, cols = params.rows, params.cols
    stages = MacArray.latency(rows) - _FRONT
    widths = {
        "load": cols,
        "weights": WEIGHT_BITS * rows,
        "valid": 1,
        "pixel": 8 * rows,
        "swap": 1,
    }
    bits = dot_bits(rows)
    dots = ", ".join(f"dot{column}_{stages - 1}[{bits - 1}:0]" for column in reversed(range(cols)))
    lines = [
        f"module {module}(clk, {', '.join(widths)}, dots);",
        "  input clk;",
        *(f"  input [{width - 1}:0] {name};" for name, width in widths.items()),
        f"  output [{bits * cols - 1}:0] dots;",
        f"  reg [{8 * rows - 1}:0] routed;",
        "  reg swaps;",
        f"  reg signed [31:0] pixels [0:{rows - 1}];",
        *(f"  reg signed [31:0] {name} [0:{rows * cols - 1}];" for name in ("shadow", "active")),
        *(f"  reg signed [31:0] dot{column}_{stage};" for column in range(cols) for stage in range(stages)),
        f"  assign dots = {{ {dots} }};",
        # Last stages come first: each reads what the stage before it held in the last cycle.
        "  always @(posedge clk) begin",
        *(_dot(column, rows) for column in range(cols)),
        *(
            f"    dot{column}_{stage} <= dot{column}_{stage - 1};"
            for column in range(cols)
            for stage in range(1, stages)
        ),
        "    if (swaps) begin",
        *(f"      active[{n}] = shadow[{n}];" for n in range(rows * cols)),
        "    end",
        *(line for column in range(cols) for line in _load(column, rows)),
        *(f"    pixels[{row}] = $signed(routed[{8 * row + 7}:{8 * row}]);" for row in range(rows)),
        "    swaps = swap;",
        "    if (valid) routed = pixel;",
        "  end",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def _dot(column: int, rows: int) -> str:
    products = " + ".join(f"pixels[{row}] * active[{row + rows * column}]" for row in range(rows))
    return f"    dot{column}_0 <= {products};"


def _load(column: int, rows: int) -> list[str]:
    def weight(row: int) -> str:
        return f"$signed(weights[{WEIGHT_BITS * row + WEIGHT_BITS - 1}:{WEIGHT_BITS * row}])"

    words = [f"      shadow[{row + rows * column}] = {weight(row)};" for row in range(rows)]
    return [f"    if (load[{column}]) begin", *words, "    end"]
