"""Coverage files are added up, waivers apply, and cover points follow from the specification."""

from dataclasses import replace
from pathlib import Path

from intloom.hw.spec.isa import make
from tests.hw.coverage.fields import cover_points, reached
from tools.coverage.counts import Point, add_up, load, save
from tools.coverage.summary import missed_text, shares, tallies, total
from tools.coverage.waivers import Waiver, read_waivers, waiver_of

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


def test_a_waiver_takes_a_point_out_of_the_share() -> None:
    points = [Point("walker", "toggle", 9, f"at[{bit}]") for bit in range(4)]
    counts = {points[0]: 1, points[1]: 0, points[2]: 0, points[3]: 5}
    found = tallies(counts, [])
    assert found["walker", "toggle"].missed == points[1:3]
    assert total(shares(found, {}), "toggle").percent == 50.0
    found = tallies(counts, [Waiver("walk.*", r"at\[2\]", "why", "toggle")])
    share = total(shares(found, {}), "toggle")
    assert (round(share.percent, 1), share.waived) == (66.7, 1)
    assert missed_text(found, ["LOAD then LOAD"]) == "LOAD then LOAD\nwalker:9 toggle at[1]\n"


def test_a_waiver_of_a_branch_names_text_of_its_line() -> None:
    point = Point("walker", "branch", 2, "if")
    verilog = ["if (a)", "if (store_stall_weights)"]
    waiver = Waiver("walker", "if", "why", "branch", r"\(store_stall_\w+\)")
    assert waiver_of(point, [waiver], verilog) is waiver
    assert waiver_of(replace(point, line=1), [waiver], verilog) is None
    assert waiver_of(point, [waiver]) is None


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
