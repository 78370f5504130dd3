"""Names of anonymous wires: one to one, plain, without any change of the logic."""

import re

from intloom.hw.package.names import chosen_names, with_names

MODULE = r"""module \npu.part (clk, rst, \$port , go, high);
  wire \$1 ;
  wire [3:0] \$2 ;
  wire \$3 ;
  wire \$4 ;
  wire \$5 ;
  wire \$6 ;
  wire count_next;
  wire \$port ;
  reg [3:0] count;
  reg [2:0] \state.kind ;
  assign \$1  = \state.kind  == 3'h5;
  assign \$2  = count + 4'h1;
  assign \$4  = go & \$3 ;
  assign \$3  = ~ \$1 ;
  assign high = \$5  | \$port ;
  assign \$6  = ^ count;
  always @(posedge clk)
    if (rst) count <= 4'h0;
    else if (\$4 ) count <= \$2 ;
  \npu.part.inner  inner (
    .clk(clk),
    .\$other (\$5 )
  );
endmodule
"""


def test_names_tell_what_wires_are_for() -> None:
    assert chosen_names(MODULE) == {
        r"\$1": "state_kind_is_5",
        r"\$2": "count_next_2",
        r"\$3": "count_not",
        r"\$4": "count_enable",
        r"\$5": "high_value",
        r"\$6": "unused_parity",
    }


def test_the_old_names_give_the_old_text() -> None:
    names = chosen_names(MODULE)
    text = with_names(MODULE)
    for old, new in names.items():
        text = re.sub(rf"\b{new} ", lambda _, old=old: f"{old} ", text)
    assert text == MODULE


def test_ports_keep_their_names() -> None:
    assert r"| \$port ;" in with_names(MODULE)
    assert r".\$other (high_value )" in with_names(MODULE)
