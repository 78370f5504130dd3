"""`intloom compare`: layers by name, totals, and clear errors."""

import json

import pytest

from intloom.cli import main
from intloom.common.errors import ExitCode


def run_folder(folder, cycles, **changes):
    names = ("name", "hardware", "backend")
    layers = [
        {"name": n, "op": "Conv", "cycles": c, "predicted_cycles": 7, "dram_bytes": 10, "mismatches": 0}
        for n, c in cycles.items()
    ]
    total = sum(c or 0 for c in cycles.values()) or None
    record = dict.fromkeys(names, "x") | {"first_divergence": None, "layers": layers, "cycles": total}
    record |= {"predicted_cycles": 14, "mac_use": total and 0.5, "dram_bytes": 20, "mismatches": 0} | changes
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(record))
    return str(folder)


def test_two_runs_side_by_side(tmp_path, capsys):
    before = run_folder(tmp_path / "a", {"same": 9, "conv1": 1000, "conv2": 500, "gone": 100})
    first = {"layer": "conv1", "tensor": "t<1>"}
    after = run_folder(
        tmp_path / "b", {"same": 9, "conv1": 1500, "conv2": 100, "new": 5}, mac_use=0.625, first_divergence=first
    )
    assert main(["compare", before, after, "--json"]) == ExitCode.OK
    result = json.loads(capsys.readouterr().out)
    assert result["totals"]["cycles"] == [1609, 1614]
    assert [(row["name"], row["cycles"]) for row in result["layers"]] == [
        ("conv2", [500, 100]), ("gone", [100, None]), ("new", [None, 5]), ("conv1", [1000, 1500]), ("same", [9, 9])
    ]  # fmt: skip
    page = (tmp_path / "b/compare.html").read_text()
    for shown in ("-80.0 %", "+50.0 %", "+12.5 points", "1,609", "t&lt;1&gt;", "<main>"):
        assert shown in page
    assert main(["compare", before, after, "-o", str(tmp_path / "c.html")]) == ExitCode.OK
    table = capsys.readouterr().out
    assert "conv2" in table and "-80.0 %" in table


def test_runs_without_cycles_are_compared_by_predicted_ones(tmp_path, capsys):
    runs = [run_folder(tmp_path / name, {"conv1": None}) for name in "ab"]
    assert main(["compare", *runs]) == ExitCode.OK
    assert "equal" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["{}", "[]", "x"])
def test_an_altered_record_is_refused(tmp_path, content, capsys):
    good = run_folder(tmp_path / "a", {"conv1": 1})
    (tmp_path / "b").mkdir()
    (tmp_path / "b/run.json").write_text(content)
    assert main(["compare", good, str(tmp_path / "b")]) == ExitCode.BAD_FILE
    assert "run.json" in capsys.readouterr().err
    assert main(["compare", good, str(tmp_path / "none")]) == ExitCode.BAD_FILE
