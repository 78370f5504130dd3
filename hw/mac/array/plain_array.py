"""The MAC array as a simulator computes it fastest: whole dot products, then a delay instead of the adder tree.

Verilog that is written here, not generated from `MacArray`: numbers of 32 bits in arrays, which a C++ compiler
computes with vector instructions.
"""

from collections.abc import Callable

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
        **({"depthwise": 1} if params.depthwise else {}),
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
        *(_held_registers(rows, cols) if params.depthwise else []),
        *(f"  reg signed [31:0] dot{column}_{stage};" for column in range(cols) for stage in range(stages)),
        f"  assign dots = {{ {dots} }};",
        # Last stages come first: each reads what the stage before it held in the last cycle.
        "  always @(posedge clk) begin",
        *_columns(cols, rows, params.depthwise),
        *(
            f"    dot{column}_{stage} <= dot{column}_{stage - 1};"
            for column in range(cols)
            for stage in range(1, stages)
        ),
        "    if (swaps) begin",
        *(f"      active[{n}] = shadow[{n}];" for n in range(rows * cols)),
        "    end",
        *(line for column in range(cols) for line in _load(column, rows)),
        *(_hold(rows, cols) if params.depthwise else []),
        *(f"    pixels[{row}] = $signed(routed[{8 * row + 7}:{8 * row}]);" for row in range(rows)),
        "    swaps = swap;",
        *(["    shifts = depthwise;"] if params.depthwise else []),
        "    if (valid) routed = pixel;",
        "  end",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def _columns(cols: int, rows: int, depthwise: bool) -> list[str]:
    """The dot products of all columns: of the broadcast word, or of the words that each column holds."""

    def dots(factor: Callable[[int, int], str]) -> list[str]:
        def products(column: int) -> str:
            return " + ".join(f"{factor(row, column)} * active[{row + rows * column}]" for row in range(rows))

        return [f"    dot{column}_0 <= {products(column)};" for column in range(cols)]

    broadcast = dots(lambda row, _: f"pixels[{row}]")
    if not depthwise:
        return broadcast
    held = dots(lambda row, column: f"held[{row + rows * column}]")
    return ["    if (holds) begin", *held, "    end else begin", *broadcast, "    end"]


def _held_registers(rows: int, cols: int) -> list[str]:
    return [f"  reg signed [31:0] held [0:{rows * cols - 1}];", "  reg shifts, holds;"]


def _hold(rows: int, cols: int) -> list[str]:
    """The words that the columns hold; after a broadcast word, all columns hold that word's bytes."""
    cells = [(row, column) for column in range(cols) for row in reversed(range(1, rows))]
    return [
        "    if (shifts) begin",
        "      if (swaps) begin",
        *(f"        held[{n}] = 0;" for n in range(rows * cols)),
        "      end else if (!holds) begin",
        *(f"        held[{row + rows * column}] = pixels[{row}];" for column in range(cols) for row in range(rows)),
        "      end",
        *(f"      held[{row + rows * column}] = held[{row - 1 + rows * column}];" for row, column in cells),
        *(f"      held[{rows * c}] = $signed(routed[{8 * c + 7}:{8 * c}]);" for c in range(cols)),
        "    end",
        "    holds = shifts;",
    ]


def _load(column: int, rows: int) -> list[str]:
    def weight(row: int) -> str:
        return f"$signed(weights[{WEIGHT_BITS * row + WEIGHT_BITS - 1}:{WEIGHT_BITS * row}])"

    words = [f"      shadow[{row + rows * column}] = {weight(row)};" for row in range(rows)]
    return [f"    if (load[{column}]) begin", *words, "    end"]
