"""Routing without regard to delays, and again with it, by nextpnr."""

import json
import re
from pathlib import Path
from typing import Any

from intloom.hw.fpga.report import read_clock
from intloom.hw.fpga.routing import ignore_delays, reopen
from tests.hw.fpga.small_design import small_layout

FAR = 5_000.0
"""A goal, in MHz, that no path reaches."""


def test_long_paths_are_routed_again(tmp_path: Path) -> None:
    flow, command = small_layout(tmp_path)
    placed, layout, opened = (tmp_path / f"{name}.json" for name in ("placed", "layout", "opened"))
    ignore_delays(placed)
    as_placed = [*command, "--no-pack", "--no-place"]
    routing = [*as_placed, "--json", placed.name, "--write", layout.name, "--report", "report.json"]
    flow.run(routing, "route.log")
    assert settings(layout)["router"] == "router1"
    assert not int(settings(layout)["timing_driven"], 2)
    reached, path = read_clock(tmp_path / "report.json")
    assert path
    reopen(layout, path, FAR, opened)
    assert unrouted(opened) - unrouted(layout) == path
    flow.run([*as_placed, "--json", opened.name, "--write", "new.json", "--report", "again.json"], "again.log")
    assert unrouted(tmp_path / "new.json") == unrouted(layout)
    log = (tmp_path / "again.log").read_text()
    rounds = [int(count) for count in re.findall(r"(\d+) arcs ripped up", log)]
    assert len(rounds) == 50
    assert rounds[0] > len(path)
    assert read_clock(tmp_path / "again.json")[0] > 0.8 * reached


def test_a_layout_that_meets_the_goal_is_routed_once(tmp_path: Path) -> None:
    flow, command = small_layout(tmp_path)
    placed, layout, opened = (tmp_path / f"{name}.json" for name in ("placed", "layout", "opened"))
    ignore_delays(placed)
    as_placed = [*command, "--no-pack", "--no-place"]
    flow.run([*as_placed, "--json", placed.name, "--write", layout.name, "--report", "report.json"], "route.log")
    reached, path = read_clock(tmp_path / "report.json")
    reopen(layout, path, reached / 2, opened)
    flow.run([*as_placed, "--json", opened.name, "--write", "new.json"], "again.log")
    assert re.findall(r"(\d+) arcs ripped up", (tmp_path / "again.log").read_text()) == ["0"]


def top(layout: Path) -> dict[str, Any]:
    (module,) = json.loads(layout.read_text())["modules"].values()
    return dict(module)


def settings(layout: Path) -> dict[str, str]:
    return dict(top(layout)["settings"])


def unrouted(layout: Path) -> set[str]:
    return {name for name, net in top(layout)["netnames"].items() if not net["attributes"].get("ROUTING", "").strip()}
