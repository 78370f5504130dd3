"""nextpnr's report and log: figures, the limiting path, and designs that do not fit."""

import json
from pathlib import Path
from typing import Any

import pytest

from intloom.hw.fpga.flow import step_of
from intloom.hw.fpga.report import CriticalPath, Resource, TooLargeError, check_fit, read_reports, read_utilization

LOG = """\
Info: Device utilisation:
Info: \t              DP16KD:      50/     56    89%
Info: \t          MULT18X18D:      24/     28    85%
Info: \t          TRELLIS_FF:   16491/  24288    67%
Info: \t        TRELLIS_COMB:   26001/  24288   107%
"""


def _step(kind: str, delay: float, to: str, net: str = "") -> dict[str, Any]:
    return {"type": kind, "delay": delay, "from": {"cell": "x"}, "to": {"cell": to}, "net": net}


def test_the_log_tells_what_is_used(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    used = read_utilization(tmp_path / "log")
    assert used["LUT"] == Resource(26001, 24288)
    assert used["RAM"] == Resource(50, 56)


def test_a_design_that_does_not_fit_is_refused_with_figures(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    with pytest.raises(TooLargeError, match=r"LUT 26001, but 24288 are there .*DSP 24 of 28") as caught:
        check_fit(read_utilization(tmp_path / "log"), "LFE5U-25F")
    assert "LFE5U-25F" in str(caught.value)
    assert caught.value.used["RAM"] == Resource(50, 56)
    check_fit({"LUT": Resource(3, 3)}, "LFE5U-25F")


def test_the_slowest_path_inside_the_clock_is_named(tmp_path: Path) -> None:
    slow = [
        _step("clk-to-q", 0.5, "a"), _step("routing", 1.5, "b", "npu.mac.count_TRELLIS_FF_Q_3"),
        _step("logic", 0.25, "b"), _step("routing", 1.0, "c", "npu.mac.sum"),
        _step("setup", 0.25, "npu.mac.total_TRELLIS_FF_Q"),
    ]  # fmt: skip
    quick = [_step("clk-to-q", 0.5, "a"), _step("routing", 0.5, "b", "n"), _step("setup", 0.1, "b")]
    outside = [_step("routing", 99.0, "b", "pin"), _step("setup", 0.0, "b")]
    report = {
        "fmax": {"clk": {"achieved": 101.5, "constraint": 100}},
        "utilization": {
            cell: {"used": n, "available": 9}
            for n, cell in enumerate(("TRELLIS_COMB", "TRELLIS_FF", "MULT18X18D", "DP16KD"))
        },
        "critical_paths": [
            {"from": "<async>", "to": "posedge clk", "path": outside},
            {"from": "posedge clk", "to": "posedge clk", "path": quick},
            {"from": "posedge clk", "to": "posedge clk", "path": slow},
        ],
    }
    faster = {**report, "fmax": {"clk": {"achieved": 130.0}}, "critical_paths": []}
    (tmp_path / "6.json").write_text(json.dumps(report))
    (tmp_path / "8.json").write_text(json.dumps(faster))
    result = read_reports({6: tmp_path / "6.json", 8: tmp_path / "8.json"}, "LFE5U-25F", 60.0)
    assert result.path == CriticalPath("npu.mac.count", "npu.mac.total", 3.5, 2.5, 1)
    assert (result.mhz, result.used["DSP"]) == ({6: 101.5, 8: 130.0}, Resource(2, 9))


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("12. Executing SYNTH_LATTICE pass.\n", "mapping to ECP5"),
        ("Info: Routing..\n", "routing"),
        ("Info: Max frequency for clock 'clk': 93.1 MHz\n", "Max frequency for clock 'clk': 93.1 MHz"),
        ("12.3. Executing OPT pass.\n", None),
    ],
)
def test_steps_are_told(line: str, step: str | None) -> None:
    assert step_of(line) == step
