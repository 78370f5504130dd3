"""Every timing diagram of the manual shows what the real component does."""

import json
from pathlib import Path

import pytest

from tools.timing_diagrams.catalogue import DIAGRAMS, FOLDER, source_path, source_text
from tools.timing_diagrams.diagram import Diagram, Row
from tools.timing_diagrams.recording import Recording

PAGE = Path(__file__).parents[2] / "docs" / "timing-diagrams.md"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_equals_a_simulation_of_the_component(name: str) -> None:
    stored = source_path(name).read_text(encoding="utf-8")
    assert stored == source_text(name), f"docs/timing/{name}.json is out of date: run `make generated`"


def test_no_other_sources_and_every_diagram_is_on_the_page() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(DIAGRAMS)
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"timing/{name}.svg" in text for name in DIAGRAMS)


def test_lanes_show_each_change_of_value_once() -> None:
    recording = Recording(
        [(["start"], [0, 1, 0, 0]), (["bit"], [0, 1, 1, 0]), (["word"], [7, 7, 7, 9]), (["valid"], [0, 1, 1, 1])]
    )
    rows = [Row("bit", "bit"), "group", Row("word", "word", str, valid="valid"), Row("high", "word", bit=3)]
    lanes = json.loads(Diagram("title", "start", 1, 4, rows).text(recording))["signal"]
    assert lanes[1] == {"name": "bit", "wave": "01.0"}
    assert lanes[2][1] == {"name": "word", "wave": "x=.=", "data": ["7", "9"]}
    assert lanes[2][2] == {"name": "high", "wave": "0..1"}


def test_a_signal_that_was_renamed_is_reported_with_its_likely_new_name() -> None:
    with pytest.raises(KeyError, match="b.valid"):
        Recording([(["b.valid"], [1])])["a.valid"]


def test_a_modules_own_port_is_told_from_its_submodules_ports() -> None:
    own, inner = [0, 1], [1, 1]
    recording = Recording([(["a.valid", "a.b.valid"], inner), (["valid$3", "a.valid$1"], own), (["a.valid$2"], inner)])
    assert recording["a.valid"] == own
    assert recording["a.b.valid"] == inner
    with pytest.raises(KeyError, match="0 signals"):
        Recording([(["a.valid"], own), (["a.valid$1"], inner)])["a.valid"]
