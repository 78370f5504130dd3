"""Descriptions of Verilog do not depend on numbers that tools give, and on nothing but what they describe."""

import re

import pytest

from intloom.sim.rtl.verilog import verilog_of
from tests.support.shapes import SHAPES
from tools.netlist import Names, modules

SMALL = r"""
module \top.adder$4 (clk, a, b, total);
  wire \$1 ;
  wire [3:0] \$2 ;
  reg [3:0] \$signal ;
  reg [3:0] \$signal$3 ;
  input [3:0] a;
  assign \$1  = a == 4'h3;
  assign \$2  = \$1  ? a : b;
  always @(posedge clk)
    if (rst) \$signal  <= 4'h0;
    else if (\$1 ) \$signal  <= \$2 ;
  always @(posedge clk)
    \$signal$3  <= \$signal  + b;
  assign total = \$signal$3  - \$signal ;
  \top.adder.inner$9  inner (
    .a(\$2 ),
    .\q$12 (\q$30 )
  );
endmodule
"""
RENUMBERED = (
    SMALL.replace("$30", "$31").replace("$12", "$77").replace("$9", "$10").replace(r"\$1 ", r"\$8 ").replace("$4", "")
)
CHANGES = {
    "operand": ("? a : b", "? b : a"),
    "constant behind a net without a name": ("4'h3", "4'h2"),
    "registers without names": (r"\$signal$3  - \$signal ;", r"\$signal  - \$signal$3 ;"),
    "width": ("reg [3:0]", "reg [4:0]"),
    "connection": (r".a(\$2 )", r".a(\$1 )"),
    "instance's port": (".a(", ".b("),
}  # fmt: skip


def exactly(verilog: str) -> dict[str, str]:
    return {path: module.exactly for path, module in modules(verilog).items()}


def test_numbers_change_nothing() -> None:
    assert exactly(RENUMBERED) == exactly(SMALL)
    assert "top.adder" in exactly(SMALL)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_one(change: str) -> None:
    changed = SMALL.replace(*CHANGES[change])
    assert changed != SMALL
    assert exactly(changed) != exactly(SMALL)


def test_a_net_may_depend_on_other_bits_of_itself() -> None:
    def chained(constant: str) -> str:
        return SMALL.replace("a == 4'h3", r"{ \$2 [0], " + f"a == {constant}" + " }")

    assert exactly(chained("4'h3")) != exactly(chained("4'h2"))


def test_without_widths_wider_words_are_equal() -> None:
    wider = SMALL.replace("[3:0]", "[7:0]").replace("4'h", "8'h0")
    ((one,), (other,)) = (modules(text).values() for text in (SMALL, wider))
    described = [[*map(Names(m, widths=False).describe, m.items)] for m in (one, other)]
    assert described[0] == described[1]
    assert exactly(SMALL) != exactly(wider)


def test_a_change_in_one_module_changes_no_other() -> None:
    verilog = verilog_of(SHAPES["nano"])
    before = exactly(verilog)
    start = verilog.index(r"module \npu.engine.load.front.addresses")
    changed = verilog[:start] + re.sub(r" \+ ", " - ", verilog[start:], count=1)
    after = exactly(changed)
    assert [path for path in before if before[path] != after[path]] == ["npu.engine.load.front.addresses"]
    renumbered = re.sub(r"(procmux[$_])(\d+)", lambda m: f"{m[1]}{int(m[2]) + 7}", verilog)
    assert renumbered != verilog
    assert exactly(renumbered) == before
