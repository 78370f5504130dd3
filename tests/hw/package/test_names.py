"""Names of wires that have none in the source: one to one, plain, without any change of the logic."""

import re

from intloom.hw.package.names import chosen_names, port_names, renamed

MODULE = r"""module \npu.part (clk, rst, \port$9$0 , go, high);
  wire \$1 ;
  wire [3:0] \$2 ;
  wire \$3 ;
  wire \$4 ;
  wire \$5 ;
  wire \$6 ;
  wire [3:0] \$7 ;
  wire count_next;
  wire \port$9$0 ;
  wire \valid$12 ;
  wire \port$8$3 ;
  reg [3:0] count;
  reg [2:0] state;
  assign \$1  = state == 3'h5;
  assign \$2  = count + 4'h1;
  assign \$4  = go & \$3 ;
  assign \$3  = ~ \$1 ;
  assign high = \$5  | \port$9$0 ;
  assign \$6  = ^ count;
  always @(posedge clk)
    if (rst) count <= 4'h0;
    else if (\$4 ) count <= \$2 ;
  assign \$7  = procmux_3 (count, \$2 );
  \npu.part.inner$2  \inner$2  (
    .clk(clk),
    .\other$5 (\$5 ),
    .valid(\valid$12 ),
    .\port$8$3 (\port$8$3 )
  );
  \npu.part.outer  outer (
    .\port$8$3 (\port$8$3 )
  );
endmodule
"""
NAMES = {
    r"\port$9$0": "fault_7",
    r"\valid$12": "inner_valid",
    r"\port$8$3": "inner_to_outer",
    r"\inner$2": "inner",
    r"\$1": "state_is_HALTED",
    r"\$2": "count_next_2",
    r"\$3": "count_not",
    r"\$4": "count_enable",
    r"\$5": "high_value",
    r"\$6": "unused_parity",
    r"\$7": "unused_value",
    "procmux_3": "unused_value_select",
}


def test_names_tell_what_wires_are_for() -> None:
    assert chosen_names(MODULE, {r"\port$9$0": "fault_7"}, {"state": {5: "HALTED"}}) == NAMES


def test_a_value_without_a_name_is_told_by_its_number() -> None:
    assert chosen_names(MODULE, {}, {"state": {4: "HALTED"}})[r"\$1"] == "state_is_5"


def test_ports_are_named_after_their_wires_in_the_module_above() -> None:
    assert list(port_names(MODULE, NAMES)) == [
        (r"\npu.part.inner$2", r"\other$5", "other"),
        (r"\npu.part.inner$2", r"\port$8$3", "inner_to_outer"),
        (r"\npu.part.outer", r"\port$8$3", "inner_to_outer"),
    ]


def test_the_old_names_give_the_old_text() -> None:
    text = renamed(MODULE, NAMES, {r"\npu.part.inner$2": {r"\other$5": "high_value"}})
    assert ".high_value(high_value)," in text
    text = text.replace(".high_value(", r".\other$5 (")
    for old, new in NAMES.items():
        text = re.sub(rf"(?<![.\w]){new}\b", lambda _, old=old: f"{old} " if old.startswith("\\") else old, text)
    assert text == MODULE
