"""A measurement is of an older design as soon as code that it depends on has changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from intloom.common.evidence import Evidence, flow_content, keep, measured, read, record

SOURCES = {
    "hw/part.py": "from intloom.hw import spec\nfrom intloom.hw.helper import used\nWIDTH = spec.BITS + used()\n",
    "hw/helper.py": "def used():\n    from tests.late import late\n    return late()\n",
    "hw/spec.py": 'BITS = 3\n"""Bits."""\n',
    "hw/other.py": "OTHER = 1\n",
    "tests/test_part.py": "import hw.part\n",
    "tests/late.py": "def late():\n    return 1\n",
}


def tree(root: Path, changes: dict[str, str]) -> Path:
    for name, text in (SOURCES | changes).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "intloom").mkdir()
    (root / "intloom" / "hw").symlink_to("../hw")
    return root


@pytest.mark.parametrize(
    ("file", "text", "current"),
    [
        ("hw/part.py", SOURCES["hw/part.py"], True),
        ("hw/part.py", f"# why\n\n{SOURCES['hw/part.py']}", True),
        ("hw/spec.py", 'BITS = 3  # three\n"""What it means."""\n', True),
        ("hw/spec.py", "BITS = 4\n", False),
        ("hw/helper.py", f"{SOURCES['hw/helper.py']}\nMORE = 1\n", False),
        ("tests/late.py", "def late():\n    return 2\n", False),
        ("hw/other.py", "OTHER = 2\n", True),
    ],
)
def test_code_that_a_file_imports_counts(tmp_path: Path, file: str, text: str, current: bool) -> None:
    before, after = tree(tmp_path / "a", {}), tree(tmp_path / "b", {file: text})
    evidence = measured(1, "make it", before, ["tests/test_part.py"])
    assert evidence.is_current(before)
    assert evidence.is_current(after) == current
    assert evidence.when(after).endswith(", measured on an older design") != current


def test_all_files_of_a_folder_count(tmp_path: Path) -> None:
    before, after = tree(tmp_path / "a", {}), tree(tmp_path / "b", {"hw/other.py": "OTHER = 2\n"})
    assert not measured(1, "make it", before, ["hw"]).is_current(after)


def test_measurements_are_kept_by_name(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    assert read(path) == {}
    rows = {name: Evidence({"n": [n]}, "2026-01-02", "abc", "make it", ("hw",), "d") for n, name in enumerate("ba")}
    for name, row in rows.items():
        record(path, name, row)
    assert read(path) == rows
    assert path.read_text().count("\n") == 4, "one line for each"
    record(path, "a", rows["b"])
    assert read(path) == {"a": rows["b"], "b": rows["b"]}


def test_a_measurement_stays_while_what_was_measured_is_equal(tmp_path: Path) -> None:
    path, root = tmp_path / "kept.json", tree(tmp_path / "a", {})
    row = Evidence(1, "2026-01-02", "abc", "make it", ("hw/part.py",), "older", content="verilog")
    record(path, "one", row)
    record(path, "without content", replace(row, content=""))
    assert not keep(path, "one", "other verilog", root) and read(path)["one"] == row
    assert not keep(path, "without content", "", root) and not keep(path, "unknown", "verilog", root)
    assert keep(path, "one", "verilog", root)
    assert read(path)["one"] == replace(row, digest=measured(1, "make it", root, row.sources).digest)


def test_a_flow_is_its_file_with_the_files_of_its_folder(tmp_path: Path) -> None:
    flow = {"hw/fpga/flow.py": "import intloom.hw.fpga.tool\nimport intloom.hw.part\n", "hw/fpga/tool.py": "T = 1\n"}
    trees = {name: tree(tmp_path / name, flow | {name: "T = 2\n"}) for name in ("hw/spec.py", "hw/fpga/tool.py")}
    before, *after = (flow_content("v", of, "hw/fpga/flow.py") for of in (tree(tmp_path / "a", flow), *trees.values()))
    assert [content == before for content in after] == [True, False]
    assert flow_content("other Verilog", tmp_path / "a", "hw/fpga/flow.py") != before
