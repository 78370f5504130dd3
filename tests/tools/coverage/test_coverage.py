"""Coverage files are added up, designs are merged, waivers apply, and cover points follow from the specification."""

from dataclasses import replace
from pathlib import Path

import pytest

from intloom.hw.spec.isa import make
from tests.hw.coverage.fields import cover_points, reached
from tools.coverage.constants import constant_bits
from tools.coverage.counts import Point, add_up, load, save
from tools.coverage.merge import Design, SharedPoint, merged
from tools.coverage.summary import missed_text, shares, tallies, total
from tools.coverage.waivers import Waiver, read_waivers, unneeded, waiver_of

LINE = "C '\x01f\x02npu.v\x01l\x02{line}\x01n\x027\x01page\x02v_{kind}/walker\x01o\x02{name}\x01h\x02top.x' {count}\n"


def write(path: Path, *rows: tuple[str, int, str, int]) -> None:
    text = "".join(LINE.format(kind=kind, line=line, name=name, count=count) for kind, line, name, count in rows)
    path.write_text(f"# SystemC::Coverage-3\n{text}")


def test_files_and_instances_are_added_up(tmp_path: Path) -> None:
    write(tmp_path / "a", ("line", 5, "block", 0), ("toggle", 9, "at[3]", 2), ("toggle", 9, "at[3]", 1))
    write(tmp_path / "b", ("line", 5, "block", 4), ("expr", 6, "x", 1))
    counts = add_up([tmp_path / "a", tmp_path / "b"])
    assert counts == {Point("walker", "line", 5, "block"): 4, Point("walker", "toggle", 9, "at[3]"): 3}
    save(counts, tmp_path / "kept.json")
    assert load(tmp_path / "kept.json") == counts
    assert not load(tmp_path / "missing.json")


def bits(*counts: int, constant: bool = False) -> list[SharedPoint]:
    return [SharedPoint("walker", "toggle", f"at[{n}]", "x", "a:9", count, constant) for n, count in enumerate(counts)]


def test_a_waiver_takes_a_point_out_of_the_share() -> None:
    points = bits(1, 0, 0, 5)
    found = tallies(points, [])
    assert found["walker", "toggle"].missed == points[1:3]
    assert total(shares(found, {}), "toggle").percent == 50.0
    found = tallies(points, [Waiver("walk.*", r"at\[2\]", "why", "toggle")])
    share = total(shares(found, {}), "toggle")
    assert (round(share.percent, 1), share.waived, share.strict_percent) == (66.7, 1, 50.0)
    assert missed_text(found, ["LOAD then LOAD"]) == "LOAD then LOAD\nwalker toggle at[1] (a:9: x)\n"


def test_a_constant_bit_is_no_point() -> None:
    share = total(shares(tallies([*bits(1, 0), *bits(0, constant=True)], []), {}), "toggle")
    assert (share.strict_percent, share.constant) == (50.0, 1)


def test_a_waiver_of_a_branch_names_text_of_its_line() -> None:
    point = SharedPoint("walker", "branch", "if", "if (store_stall_weights)", "a:2")
    waiver = Waiver("walker", "if", "why", "branch", r"\(store_stall_\w+\)")
    assert waiver_of(point, [waiver]) is waiver
    assert waiver_of(replace(point, text="if (a)"), [waiver]) is None


def test_a_waiver_without_a_missed_point_is_not_needed() -> None:
    points = [*bits(1, 0), *bits(0, constant=True), SharedPoint("walker", "line", "case", "default:", "a:7")]
    reached, needed, again, constant, line, other = waivers = [
        Waiver(module, name, "why", kind)
        for module, name, kind in (
            ("walker", r"at\[0\]", "toggle"),
            ("walker", r"at\[1\]", "toggle"),
            ("walk.*", r"at\[1\]", "toggle"),
            ("walker", "at", "toggle"),
            ("walker", "case", "line"),
            ("raster", "case", "line"),
        )
    ]
    assert unneeded(points, waivers) == [reached, again, constant, other]
    assert unneeded(points, [again, needed, line]) == [needed]


VERILOG = r"""module npu(clk, a, total);
  input clk;
  wire \$1 ;
  input [{high}:0] a;
  wire [{high}:0] a;
  output [{high}:0] total;
  reg [{high}:0] total = {width}'h0;
  wire [1:0] \part.one ;
  assign \$1  = a == {width}'h3;
  assign \part.one  = {{ 1'h0, \$1  }};
{more}  always @(posedge clk)
    if (\$1 ) total <= a;
endmodule
"""
NARROW, WIDE = (VERILOG.format(high=high, width=high + 1, more=more) for high, more in ((3, ""), (7, "  wire b;\n")))
PART = "part__02eone[{}]:0->1"


def design(name: str, verilog: str, branch: int, **toggles: int) -> Design:
    line = verilog.splitlines().index(r"    if (\$1 ) total <= a;") + 1
    counts = {Point("npu", "branch", line, "if"): branch, Point("npu", "branch", line, "else"): 0}
    return Design(name, verilog, counts | {Point("npu", "toggle", 8, n): count for n, count in toggles.items()})


def test_a_point_is_covered_if_one_design_reaches_it() -> None:
    narrow = design("narrow", NARROW, 1, **{"total[3]:0->1": 0, PART.format(0): 0, PART.format(1): 0, "__0241:0->1": 2})
    wide = design("wide", WIDE, 0, **{"total[3]:0->1": 4, "total[7]:0->1": 1, PART.format(0): 5, "__0241:0->1": 3})
    points = {(p.kind, p.name): p for p in merged([narrow, wide])}
    counts = {name: (p.count, p.constant) for name, p in points.items()}
    assert counts == {
        ("branch", "if"): (1, False),
        ("branch", "else"): (0, False),
        ("toggle", "total[3]:0->1"): (4, False),
        ("toggle", "total[7]:0->1"): (1, False),
        ("toggle", "part.one[0]:0->1"): (5, False),
        ("toggle", "part.one[1]:0->1"): (0, True),
        ("toggle", "$1:0->1"): (5, False),
    }
    assert points["toggle", "total[7]:0->1"].where == "wide:8"


FIXED = r"""module npu(clk, a, sum, events, count, started);
  input clk;
  input [3:0] a;
  output [7:0] sum;
  wire [7:0] sum;
  wire \$1 ;
  reg [1:0] unread = 2'h0;
  output [3:0] events, count;
  reg [3:0] events = 4'h0;
  reg [3:0] count = 4'h0;
  output started;
  reg started = 1'h0;
  assign \$1  = count[0] & 1'h0;
  assign sum = { 4'h0, a } + { 7'h0, started };
  always @(posedge clk) begin
    events <= (events & ~a) | { 3'h0, a[3] };
    count <= count + 4'h2;
    started <= 1'h1;
    unread <= { a[0] & 1'h0, a[0] };
    if (\$1 ) events <= 4'h1;
    if (!\$1 ) started <= 1'h1;
    if (!events[0]) started <= 1'h1;
  end
endmodule
"""


def test_bits_with_one_value() -> None:
    """Bits above an operation's operands, a register that only clears bits, one that counts in twos, an unread one."""
    fixed = {"sum": "xxxxx000", "$1": "0", "events": "x000", "count": "0xxx", "unread": "x0"}
    found = {name: constant_bits(FIXED).get(name) for name in ("a", "started", *fixed)}
    assert found == dict.fromkeys(("a", "started")) | fixed


def test_a_bit_with_one_value_that_falls_is_an_error() -> None:
    """A count of another bit is counted for it, or it has more than one value."""
    counts = {Point("npu", "toggle", 7, f"events[{bit}]:{edge}"): 1 for bit, edge in ((0, "1->0"), (1, "0->1"))}
    assert [(p.name, p.count, p.constant) for p in merged([Design("one", FIXED, counts)])] == [
        ("events[0]:1->0", 1, False),
        ("events[1]:0->1", 0, True),
    ]
    counts[Point("npu", "toggle", 7, "events[1]:1->0")] = 1
    with pytest.raises(ValueError, match=r"events\[1\]:1->0 of one:7 is counted 1 times"):
        [*merged([Design("one", FIXED, counts)])]


def test_a_branch_whose_condition_has_one_value_is_no_point() -> None:
    first = FIXED.splitlines().index(r"    if (\$1 ) events <= 4'h1;") + 1
    counts = {Point("npu", "branch", first + n, name): 0 for n in range(3) for name in ("if", "else")}
    found = {(p.where, p.name): p.constant for p in merged([Design("one", FIXED, counts)])}
    assert [key for key, constant in found.items() if constant] == [
        (f"one:{first}", "if"),
        (f"one:{first + 1}", "else"),
    ]
    with pytest.raises(ValueError, match=f"if of one:{first} is counted 3 times"):
        [*merged([Design("one", FIXED, counts | {Point("npu", "branch", first, "if"): 3})])]


def test_different_statements_are_different_points() -> None:
    other = design("other", NARROW.replace("4'h3", "4'h2"), 1)
    assert [(p.name, p.count) for p in merged([design("one", NARROW, 0), other])].count(("if", 0)) == 1


def test_every_waiver_has_a_reason() -> None:
    assert all(len(waiver.reason) > 20 for waiver in read_waivers())


def test_a_program_reaches_bins_and_pairs() -> None:
    points = [*cover_points()]
    assert len(points) == len(set(points))
    program = [make("LOAD", n0=1 << 19), make("STORE"), make("LOAD", target=1), make("VAVG", iy0=-1)]
    found = set(reached(program))
    assert found <= set(points)
    for name in ("LOAD.n0 upper half", "LOAD.n0 smallest", "LOAD.target 1", "LOAD then LOAD", "VAVG.iy0 negative"):
        assert name in found
    assert "LOAD then STORE" not in points, "pairs are those of one unit"
