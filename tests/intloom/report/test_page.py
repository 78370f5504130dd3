"""The report: one page that needs nothing else, with everything of the run in it."""

import json
import re
import shutil
from pathlib import Path

import pytest

from intloom.cli import main
from intloom.common.errors import FileFormatError
from intloom.exploration.device import clock_of
from intloom.hw.spec.isa import assemble, disassemble
from intloom.hw.spec.params import preset
from intloom.report import render, write_report
from intloom.report.compare import compare_runs, write_compare
from intloom.report.reading import write_reading
from tests.intloom.report.pages import evaluation, memory, misplaced_values, regression


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory, programs):
    folder = tmp_path_factory.mktemp("run")
    assert main(["run", str(programs("c2f")), "--backend", "isa", "--check", "-o", str(folder / "run"), "-q"]) == 0
    return folder / "run"


def report_of(run_folder, folder, **changes):
    """The page of the run, in a folder of its own, with these changes of its record; None removes a key."""
    shutil.copy(run_folder / "timeline.json", folder)
    record = json.loads((run_folder / "run.json").read_text()) | changes
    kept = {key: value for key, value in record.items() if key not in changes or value is not None}
    (folder / "run.json").write_text(json.dumps(kept))
    return write_report(folder).read_text()


def embedded(page):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL).group(1))


def test_the_page_needs_no_network(run_folder):
    page = write_report(run_folder).read_text()
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "@import" not in page
    assert "url(" not in page


def test_every_page_shows_values_where_values_belong(run_folder, tmp_path):
    record, timeline = (json.loads((run_folder / f"{name}.json").read_text()) for name in ("run", "timeline"))
    (output,) = record["original"]["outputs"]
    write_compare(compare_runs(run_folder, run_folder), tmp_path / "compare.html")
    pages = [write_report(run_folder), tmp_path / "compare.html", regression(tmp_path), evaluation(tmp_path)]
    for page in (*pages, memory(tmp_path)):
        assert not misplaced_values(page.read_text()), page
    output |= {"differing": 12345, "largest": 0.5}
    assert f"differs in 12,345 of {output['values']:,} values" in render(record, timeline, [])


def test_a_picture_without_text_says_so(tmp_path):
    record = {"hardware": "base", "backend": "isa", "cycles": None, "compared_bytes": 5, "mismatches": 0}
    page = write_reading(tmp_path, [], 1.0, record, (1, 3, 480, 640)).read_text()
    assert "found no line of text" in page and "Every letter" not in page and "float model</th>" not in page
    assert not misplaced_values(page)


@pytest.mark.parametrize("text", ["&lt;built-in method values&gt;", "None", "nan %", "object at 0x7f", "{{ a }}"])
def test_a_misplaced_value_is_found(text):
    assert misplaced_values(f"<p>differs by {text}</p>") and misplaced_values(f'<p title="{text}"></p>')
    assert not misplaced_values(f"<script>{text}</script><p>nano, finance, net-None-3.onnx</p>")


def test_the_page_holds_the_run(run_folder):
    page = write_report(run_folder).read_text()
    record, data = json.loads((run_folder / "run.json").read_text()), embedded(page)
    assert [{k: v for k, v in layer.items() if k != "traffic"} for layer in data["layers"]] == record["layers"]
    assert len(data["timeline"]) == sum(layer["instructions"] for layer in record["layers"]) + sum(
        1 for row in data["timeline"] if not 0 <= row[1] < len(record["layers"])
    )
    assert "bit-exact" in page
    assert 'href="layers.csv"' in page


def test_cycles_that_were_not_counted_are_the_predicted_ones(run_folder, tmp_path):
    page = report_of(run_folder, tmp_path, predicted_cycles=7_654_321)
    assert re.search(r"7[.,]65.*predicted by the compiler", page)


def test_names_of_the_models_cannot_break_the_page(run_folder, tmp_path):
    name, layers = "</script><script>alert(1)</script>", json.loads((run_folder / "run.json").read_text())["layers"]
    page = report_of(run_folder, tmp_path, name=name, layers=[layers[0] | {"name": name}, *layers[1:]])
    assert "<script>alert" not in page
    assert embedded(page)["name"] == embedded(page)["layers"][0]["name"] == name


@pytest.mark.parametrize("cycle", [None, 1234])
def test_the_first_divergence_is_at_the_top_with_links(run_folder, tmp_path, cycle):
    assert 'id="first-divergence"' not in write_report(run_folder).read_text()
    first = {
        "against": "golden",
        "layer": "odd",
        "layer_index": 2,
        "node": "/n",
        "tensor": "t",
        "coordinate": [0, 1, 2, 3],
    }
    first |= {
        "expected": -5,
        "got": None,
        "region": 0,
        "instruction": 17,
        "text": "CONV x",
        "cycle": cycle,
        "waves": "",
    }
    page = report_of(run_folder, tmp_path, first_divergence=first)
    top = page[page.index('id="first-divergence"') : page.index('class="tiles"')]
    for shown in ('href="#layer-2"', "[0, 1, 2, 3]", "<b>-5</b>", "no write", "#17", "CONV x"):
        assert shown in top
    assert ("1,234" in top) == ("--waves waves" in top) == (cycle is not None)


def test_a_difference_is_shown(run_folder, tmp_path):
    assert "7 bytes differ" in report_of(run_folder, tmp_path, mismatches=7)


@pytest.mark.parametrize("content", ["", "[]", "{", "null"])
def test_a_broken_record_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(FileFormatError, match=r"run\.json"):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_traffic_is_split_by_what_the_instructions_move(run_folder):
    for layer in embedded(write_report(run_folder).read_text())["layers"]:
        assert sum(layer["traffic"].values()) == layer["dram_bytes"], layer["name"]


def test_a_coded_load_counts_the_words_that_it_reads(run_folder):
    record, timeline = (json.loads((run_folder / f"{name}.json").read_text()) for name in ("run", "timeline"))

    def traffic():
        return sum(sum(layer["traffic"].values()) for layer in embedded(render(record, timeline, []))["layers"])

    before = traffic()
    row = next(row for row in timeline["timeline"] if row[5].startswith("LOAD") and assemble(row[5])["n0"] > 1)
    load = assemble(row[5])
    row[5] = disassemble(load.with_fields(coded=1))
    saved = (load["n0"] - 1) * load["n1"] * load["n2"] * record["params"]["rows"]
    assert before - traffic() == saved


def test_every_layer_is_compared(run_folder):
    layers = json.loads((run_folder / "run.json").read_text())["layers"]
    names = {layer["name"] for layer in layers}
    for layer in layers:
        assert layer["compared_bytes"] or layer["compared_in"] in names, layer["name"]
    assert sum(layer["compared_bytes"] > 0 for layer in layers) > len(layers) / 2


def _without(key):
    return lambda record: {k: v for k, v in record.items() if k != key}


@pytest.mark.parametrize(
    "change",
    [
        _without("checks"),
        _without("params"),
        lambda record: {**record, "cycles": "many"},
        lambda record: {**record, "layers": 5},
        lambda record: {**record, "layers": [{"name": "a"}]},
        lambda record: {**record, "params": {"rows": 0, "cols": 0}},
        lambda record: {**record, "mac_use": float("nan")},
        lambda record: {**record, "checks": [{}]},
    ],
)
def test_an_altered_record_is_refused_by_name(change, run_folder, tmp_path, capsys):
    for name in ("run.json", "timeline.json"):
        (tmp_path / name).write_text((run_folder / name).read_text())
    (tmp_path / "run.json").write_text(json.dumps(change(json.loads((run_folder / "run.json").read_text()))))
    assert main(["report", str(tmp_path)]) == 3
    line = capsys.readouterr().err
    assert line.startswith("intloom: error: ") and line.count("\n") == 1 and str(tmp_path) in line
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.json", "timeline.json"]


def test_an_altered_timeline_is_refused_by_name(run_folder, tmp_path):
    for name in ("run.json", "timeline.json"):
        (tmp_path / name).write_text((run_folder / name).read_text())
    rows = json.loads((run_folder / "timeline.json").read_text())
    rows["timeline"][0] = [1, 2]
    (tmp_path / "timeline.json").write_text(json.dumps(rows))
    with pytest.raises(FileFormatError, match="altered"):
        write_report(tmp_path)


def test_a_preset_has_its_measured_clock():
    page = (Path(__file__).parents[3] / "docs/fpga.md").read_text()
    (row,) = re.findall(r"^\| nano \|.* of \d+ \| (\d+\.\d) \|", page, re.MULTILINE)
    assert clock_of(preset("nano").macs).mhz == float(row)


def test_a_record_of_an_older_version_has_no_stopped_clocks(run_folder, tmp_path):
    page = report_of(run_folder, tmp_path, cycles=1000, mac_use=0.5, clock_stopped=None)
    assert 'id="clock-stopped"' not in page


def test_stopped_clocks_are_listed_where_they_are_known(run_folder, tmp_path):
    for shares, shown in (({"vec": 0.9331, "load": 0.4635}, "load 46.4 %, vec 93.3 %."), ({}, None)):
        page = report_of(run_folder, tmp_path, cycles=1000, mac_use=0.5, clock_stopped=shares)
        assert ('id="clock-stopped"' in page) == (shown is not None)
        assert shown is None or shown in page
