"""The ECP5 mapping of products and sums computes the same as the operators."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from intloom.hw.fpga import flow
from intloom.hw.fpga.loadable_adders import LOADABLE_ADDER_CELL, SELECTING_ADDER_CELL, merge_loadable_adders
from intloom.hw.resources import run_yosys

MAPPINGS = Path(flow.__file__).with_name("ecp5.v")

_WORDS = """\
read_verilog reference.v; hierarchy -top mapped; proc; opt; wreduce; opt_clean; chtype -set $__INTLOOM_PRODUCT t:$mul;
write_json words.json
"""
_MAP = """\
read_json words.json; hierarchy -top mapped;
techmap -map ecp5.v t:$__INTLOOM_PRODUCT t:$__INTLOOM_LOADABLE_ADDER t:$__INTLOOM_SELECTING_ADDER t:$add;
alumacc; techmap -map ecp5.v t:$alu;
techmap; select -assert-none t:$add t:$sub t:$mul t:$alu;
read_verilog -nooverwrite +/lattice/cells_sim_ecp5.v; hierarchy -top mapped; proc; flatten; opt_clean -purge;
write_verilog -noattr mapped.v
"""
_UPPER = "wire signed [2:0] w = b[7:5]; wire signed [9:0] p = a * w; assign y = p;"
_SIGNED = "wire signed [2:0] w = {b[7], b[7:6]}; wire signed [9:0] p = a * w; assign y = p;"
_LOWER = "wire signed [2:0] w = {1'b0, b[3:2]}; wire signed [9:0] p = a * w; assign y = p;"


_PORTS = "input signed [7:0] a, input signed [7:0] b, input signed [9:0] c"
_WIDTH = 17
"""Bits of a result."""


def _module(name: str, body: str) -> str:
    return f"module {name}({_PORTS}, output signed [{_WIDTH - 1}:0] y); {body} endmodule\n"


def _bench(count: int) -> str:
    """Results of all modules beside those of their references, for many operands."""
    lines = ["module bench; reg signed [7:0] a, b; reg signed [9:0] c; integer i, j;"]
    for k in range(count):
        lines.append(f"  wire signed [{_WIDTH - 1}:0] y{k}, z{k}; reference{k} reference{k}(a, b, c, y{k});")
        lines.append(f"  integer wrong{k} = 0;")
    lines += [f"  mapped mapped(a, b, c, {', '.join(f'z{k}' for k in range(count))});"]
    lines += ["  initial begin", "    for (i = -128; i < 128; i = i + 3) for (j = -128; j < 128; j = j + 5) begin"]
    lines += ["      a = i; b = j; c = 37 * i - 11 * j; #1;"]
    lines += [f"      if (y{k} !== z{k}) wrong{k} = wrong{k} + 1;" for k in range(count)]
    lines += ["    end", *(f'    $display("%0d", wrong{k});' for k in range(count)), "  end", "endmodule"]
    return "\n".join(lines)


def _mapped(folder: Path, references: Sequence[str], mappings: str) -> dict[str, tuple[int, int]]:
    """For how many operands each mapped module differs from its reference, and its number of loadable adders."""
    outputs = ", ".join(f"output [{_WIDTH - 1}:0] y{k}" for k in range(len(references)))
    instances = " ".join(f"part{k} p{k}(a, b, c, y{k});" for k in range(len(references)))
    top = f"module mapped({_PORTS}, {outputs}); {instances} endmodule\n"
    parts = (_module(f"part{k}", body) for k, body in enumerate(references))
    (folder / "reference.v").write_text(top + "".join(parts))
    (folder / "ecp5.v").write_text(mappings)
    run_yosys(_WORDS, folder)
    merge_loadable_adders(folder / "words.json")
    modules = json.loads((folder / "words.json").read_text(encoding="utf-8"))["modules"]
    kinds = ([cell["type"] for cell in modules[f"part{k}"]["cells"].values()] for k in range(len(references)))
    adders = [sum(map(found.count, (LOADABLE_ADDER_CELL, SELECTING_ADDER_CELL))) for found in kinds]
    run_yosys(_MAP, folder)
    originals = "".join(_module(f"reference{k}", body) for k, body in enumerate(references))
    (folder / "bench.v").write_text(originals + _bench(len(references)))
    subprocess.run(["iverilog", "-g2005", "-o", "bench", "bench.v", "mapped.v"], cwd=folder, check=True)
    done = subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True)
    return dict(zip(references, zip(map(int, done.stdout.split()), adders, strict=True), strict=True))


_BOTH = "wire [15:0] q = {a, b}, x = c[1] ? q + 7 : {b, a}; assign y = c[0] ? x : q + {c, c[5:0]};"
_ADDERS = {
    **dict.fromkeys(
        (
            _UPPER,
            _LOWER,
            _SIGNED,
            "assign y = a + b - c;",
            "assign y = {a, b} - c;",
            "assign y = {a, b, c[0]} + c;",
            "wire [15:0] q = {a, b}, p = {c, a[5:0]}; assign y = {q < p, q > p, q <= p, q >= p};",
            "wire [14:0] q = {a, b}, p = {c, a[5:0]}; assign y = {q < p, q > p, q <= p, q >= p};",
            "wire signed [15:0] q = {a, b}, p = {c, a[5:0]}; assign y = {q < p, q > p, q <= p, q >= p, q - p};",
        ),
        0,
    ),
    "wire [15:0] q = {a, b}; assign y = c[0] ? c : q + {c, c[5:0]};": 1,
    "wire [14:0] q = {a, b}, n = q - 15'd1; assign y = c[0] ? n : {b, a};": 1,
    "assign y = c[0] ? {b, a} : a + $signed(c[9:1]);": 1,
    "wire [15:0] q = {a, b}, n = q - 16'd1; assign y = c[0] ? n : {b, a};": 1,
    "wire [15:0] q = {a, b}, n = q + 16'd1; assign y = c[0] ? {b, a} : n;": 1,
    "wire [15:0] q = {a, b}, n = q + 16'd6; assign y = c[0] ? {b, a} : n;": 1,
    _BOTH: 2,
    "wire signed [9:0] q = c[0] ? {a, c[3:2]} : c; assign y = q + b;": 1,
    "wire signed [8:0] q = c[0] ? a : {c[7:1], 2'd0}; assign y = $signed({b, c}) + q;": 1,
    "wire [9:0] q = c[0] ? 0 : {a, c[3:2]}; assign y = {c, b} + q;": 1,
    "wire [9:0] q = c[0] ? 7 : {a, c[3:2]}; assign y = ({c, b} + q) ^ q[9];": 0,
    "wire [9:0] q = a < b ? c : {a, c[3:2]}; assign y = {c, b} + q;": 0,
    "wire [15:0] q = {a, b}; assign y = c[0] ? q + 1 : q + 2;": 1,
    "wire [15:0] q = {a, b}; assign y = c[0] ? c : q - {c, c[5:0]};": 0,
    "wire [15:0] q = {a, b}, p = q + 5; assign y = (c[0] ? c : p) ^ p[9];": 0,
    "wire [15:0] q = {a, b}; wire [16:0] p = q + {1'b1, c, 6'd9}; assign y = p[16] ? q + 4 : p[15:0];": 0,
    "wire [15:0] q = {a, b}, p = {c, a[5:0]}; assign y = q < p ? q + 3 : {b, a};": 0,
}
"""Loadable adders of each module."""


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_mapped_cells_equal_the_operators_and_loadable_adders_choice_and_sum(tmp_path: Path) -> None:
    found = _mapped(tmp_path, list(_ADDERS), MAPPINGS.read_text(encoding="utf-8"))
    assert found == {reference: (0, adders) for reference, adders in _ADDERS.items()}


def _wrong(folder: Path, reference: str, mappings: str) -> int:
    return _mapped(folder, [reference], mappings)[reference][0]


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_a_carry_that_runs_while_loading_is_seen(tmp_path: Path) -> None:
    wrong = MAPPINGS.read_text(encoding="utf-8").replace("1101_1110_0001_0010", "1101_1110_0001_1010")
    assert _wrong(tmp_path, "wire [15:0] q = {a, b}; assign y = c[0] ? c : q + {c, c[5:0]};", wrong) > 0


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_a_carry_of_the_wrong_operand_is_seen(tmp_path: Path) -> None:
    wrong = MAPPINGS.read_text(encoding="utf-8").replace("0101_0110_1001_1010", "0101_0110_1001_1110")
    assert _wrong(tmp_path, "wire [9:0] q = c[0] ? c : {a, c[3:2]}; assign y = {c, b} + q;", wrong) > 0


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_a_row_with_the_wrong_sign_is_seen(tmp_path: Path) -> None:
    wrong = MAPPINGS.read_text(encoding="utf-8").replace("16'h95aa", "16'h6aaa")
    assert _wrong(tmp_path, _UPPER, wrong) > 0
