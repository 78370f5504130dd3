"""Routing without regard to delays, and again with it, by nextpnr."""

import json
import re
from pathlib import Path
from typing import Any

from intloom.hw.fpga.flow import Flow
from intloom.hw.fpga.placement.routing import ignore_delays, reopen
from intloom.hw.fpga.report import read_clock
from tests.hw.fpga.small_design import small_layout

FAR = 5_000.0
"""A goal, in MHz, that no path reaches."""


def routed(folder: Path) -> tuple[Flow, list[str]]:
    """Write layout.json and report.json; the flow, and nextpnr's command to route again."""
    flow, command = small_layout(folder)
    ignore_delays(folder / "placed.json")
    as_placed = [*command, "--no-pack", "--no-place"]
    flow.run([*as_placed, "--json", "placed.json", "--write", "layout.json", "--report", "report.json"], "route.log")
    again = ["--json", "opened.json", "--write", "new.json", "--report", "again.json"]
    return flow, [*as_placed, *again]


def test_long_paths_are_routed_again(tmp_path: Path) -> None:
    flow, again = routed(tmp_path)
    layout, opened = (tmp_path / f"{name}.json" for name in ("layout", "opened"))
    assert settings(layout)["router"] == "router1"
    assert not int(settings(layout)["timing_driven"], 2)
    reached, path = read_clock(tmp_path / "report.json")
    assert path
    reopen(layout, path, FAR, opened)
    assert unrouted(opened) - unrouted(layout) == path
    flow.run(again, "again.log")
    assert unrouted(tmp_path / "new.json") == unrouted(layout)
    log = (tmp_path / "again.log").read_text()
    rounds = [int(count) for count in re.findall(r"(\d+) arcs ripped up", log)]
    assert len(rounds) == 50
    assert rounds[0] > len(path)
    assert read_clock(tmp_path / "again.json")[0] > 0.8 * reached


def test_a_layout_that_meets_the_goal_is_routed_once(tmp_path: Path) -> None:
    flow, again = routed(tmp_path)
    reached, path = read_clock(tmp_path / "report.json")
    reopen(tmp_path / "layout.json", path, reached / 2, tmp_path / "opened.json")
    flow.run(again, "again.log")
    assert re.findall(r"(\d+) arcs ripped up", (tmp_path / "again.log").read_text()) == ["0"]


def top(layout: Path) -> dict[str, Any]:
    (module,) = json.loads(layout.read_text())["modules"].values()
    return dict(module)


def settings(layout: Path) -> dict[str, str]:
    return dict(top(layout)["settings"])


def unrouted(layout: Path) -> set[str]:
    return {name for name, net in top(layout)["netnames"].items() if not net["attributes"].get("ROUTING", "").strip()}
