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
        ("conv1", [1000, 1500]), ("new", [None, 5]), ("same", [9, 9]), ("gone", [100, None]), ("conv2", [500, 100])
    ]  # fmt: skip
    page = (tmp_path / "b/compare.html").read_text()
    for shown in ("-80.0 %", "+50.0 %", "+12.5 points", "1,609", "t&lt;1&gt;", "<main>"):
        assert shown in page
    assert main(["compare", before, after, "-o", str(tmp_path / "c.html")]) == ExitCode.OK
    table = capsys.readouterr().out
    assert "conv2" in table and "-80.0 %" in table


def test_what_differs_in_the_set_up_is_named(tmp_path, capsys):
    before = run_folder(tmp_path / "a", {"c": 9}, params={"rows": 4, "cols": 4}, conditions={"read_latency": 50})
    after = run_folder(tmp_path / "b", {"c": 9}, params={"rows": 4, "cols": 8}, conditions={"read_latency": 400})
    assert main(["compare", before, after]) == ExitCode.OK
    said = capsys.readouterr().err
    assert "cols: 4 before, 8 after" in said and "memory read latency: 50 before, 400 after" in said
    page = (tmp_path / "b/compare.html").read_text()
    section = page[page.index('id="setup"') : page.index("<h2>Layers")]
    assert "<td>cols</td>" in section and "<td>rows</td>" not in section and ">400<" in section
    assert main(["compare", before, before]) == ExitCode.OK
    assert "same model, hardware" in (tmp_path / "a/compare.html").read_text()


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
