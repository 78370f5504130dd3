"""The ECP5 mapping of products and sums computes the same as the operators."""

import subprocess
from pathlib import Path

import pytest

from intloom.hw.fpga import flow
from intloom.hw.fpga.loadable_adders import merge_loadable_adders
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
_BENCH = """\
module bench;
  reg signed [7:0] a, b;
  reg signed [9:0] c;
  wire signed [16:0] y, z;
  integer i, j, wrong;
  reference reference(a, b, c, y);
  mapped mapped(a, b, c, z);
  initial begin
    wrong = 0;
    for (i = -128; i < 128; i = i + 1)
      for (j = -128; j < 128; j = j + 3) begin
        a = i; b = j; c = 37 * i - 11 * j;
        #1 if (y !== z) wrong = wrong + 1;
      end
    $display("wrong: %0d", wrong);
  end
endmodule
"""
_UPPER = "wire signed [2:0] w = b[7:5]; wire signed [9:0] p = a * w; assign y = p;"
_SIGNED = "wire signed [2:0] w = {b[7], b[7:6]}; wire signed [9:0] p = a * w; assign y = p;"
_LOWER = "wire signed [2:0] w = {1'b0, b[3:2]}; wire signed [9:0] p = a * w; assign y = p;"


def _wrong(folder: Path, reference: str, mappings: str, steps: int = 0) -> int:
    """For how many operands the mapped module differs from the reference, which has this number of loadable adders."""
    ports = "input signed [7:0] a, input signed [7:0] b, input signed [9:0] c, output signed [16:0] y"
    reference_text, mapped_text = (
        f"module {name}({ports}); {reference} endmodule\n" for name in ("reference", "mapped")
    )
    (folder / "reference.v").write_text(mapped_text)
    (folder / "ecp5.v").write_text(mappings)
    run_yosys(_WORDS, folder)
    assert merge_loadable_adders(folder / "words.json") == steps
    run_yosys(_MAP, folder)
    (folder / "bench.v").write_text(reference_text + _BENCH)
    subprocess.run(["iverilog", "-g2005", "-o", "bench", "bench.v", "mapped.v"], cwd=folder, check=True)
    done = subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True)
    return int(done.stdout.rpartition("wrong: ")[2])


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.parametrize(
    "reference",
    [
        _UPPER,
        _LOWER,
        _SIGNED,
        "assign y = a + b - c;",
        "assign y = {a, b} - c;",
        "assign y = {a, b, c[0]} + c;",
        "wire [15:0] q = {a, b}, p = {c, a[5:0]}; assign y = {q < p, q > p, q <= p, q >= p};",
        "wire [14:0] q = {a, b}, p = {c, a[5:0]}; assign y = {q < p, q > p, q <= p, q >= p};",
        "wire signed [15:0] q = {a, b}, p = {c, a[5:0]}; assign y = {q < p, q > p, q <= p, q >= p, q - p};",
    ],
)
def test_mapped_cells_equal_the_operator(reference: str, tmp_path: Path) -> None:
    assert _wrong(tmp_path, reference, MAPPINGS.read_text(encoding="utf-8")) == 0


_BOTH = "wire [15:0] q = {a, b}, x = c[1] ? q + 7 : {b, a}; assign y = c[0] ? x : q + {c, c[5:0]};"


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.parametrize(
    ("reference", "steps"),
    [
        ("wire [15:0] q = {a, b}; assign y = c[0] ? c : q + {c, c[5:0]};", 1),
        ("wire [14:0] q = {a, b}, n = q - 15'd1; assign y = c[0] ? n : {b, a};", 1),
        ("assign y = c[0] ? {b, a} : a + $signed(c[9:1]);", 1),
        ("wire [15:0] q = {a, b}, n = q - 16'd1; assign y = c[0] ? n : {b, a};", 1),
        ("wire [15:0] q = {a, b}, n = q + 16'd1; assign y = c[0] ? {b, a} : n;", 1),
        ("wire [15:0] q = {a, b}, n = q + 16'd6; assign y = c[0] ? {b, a} : n;", 1),
        (_BOTH, 2),
        ("wire signed [9:0] q = c[0] ? {a, c[3:2]} : c; assign y = q + b;", 1),
        ("wire signed [8:0] q = c[0] ? a : {c[7:1], 2'd0}; assign y = $signed({b, c}) + q;", 1),
        ("wire [9:0] q = c[0] ? 0 : {a, c[3:2]}; assign y = {c, b} + q;", 1),
        ("wire [9:0] q = c[0] ? 7 : {a, c[3:2]}; assign y = ({c, b} + q) ^ q[9];", 0),
        ("wire [9:0] q = a < b ? c : {a, c[3:2]}; assign y = {c, b} + q;", 0),
        ("wire [15:0] q = {a, b}; assign y = c[0] ? q + 1 : q + 2;", 1),
        ("wire [15:0] q = {a, b}; assign y = c[0] ? c : q - {c, c[5:0]};", 0),
        ("wire [15:0] q = {a, b}, p = q + 5; assign y = (c[0] ? c : p) ^ p[9];", 0),
        ("wire [15:0] q = {a, b}; wire [16:0] p = q + {1'b1, c, 6'd9}; assign y = p[16] ? q + 4 : p[15:0];", 0),
        ("wire [15:0] q = {a, b}, p = {c, a[5:0]}; assign y = q < p ? q + 3 : {b, a};", 0),
    ],
)
def test_loadable_adders_equal_choice_and_sum(reference: str, steps: int, tmp_path: Path) -> None:
    assert _wrong(tmp_path, reference, MAPPINGS.read_text(encoding="utf-8"), steps) == 0


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_a_carry_that_runs_while_loading_is_seen(tmp_path: Path) -> None:
    wrong = MAPPINGS.read_text(encoding="utf-8").replace("1101_1110_0001_0010", "1101_1110_0001_1010")
    assert _wrong(tmp_path, "wire [15:0] q = {a, b}; assign y = c[0] ? c : q + {c, c[5:0]};", wrong, 1) > 0


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_a_carry_of_the_wrong_operand_is_seen(tmp_path: Path) -> None:
    wrong = MAPPINGS.read_text(encoding="utf-8").replace("0101_0110_1001_1010", "0101_0110_1001_1110")
    assert _wrong(tmp_path, "wire [9:0] q = c[0] ? c : {a, c[3:2]}; assign y = {c, b} + q;", wrong, 1) > 0


@pytest.mark.slow
@pytest.mark.needs("iverilog")
def test_a_row_with_the_wrong_sign_is_seen(tmp_path: Path) -> None:
    wrong = MAPPINGS.read_text(encoding="utf-8").replace("16'h95aa", "16'h6aaa")
    assert _wrong(tmp_path, _UPPER, wrong) > 0
