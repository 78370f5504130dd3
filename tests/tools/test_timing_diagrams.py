"""Every timing diagram of the manual shows what the real component does."""

from pathlib import Path

import pytest

from tools.timing_diagrams.__main__ import DIAGRAMS, FOLDER, source_path, source_text

PAGE = Path(__file__).parents[2] / "docs" / "timing-diagrams.md"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_equals_a_simulation_of_the_component(name: str) -> None:
    stored = source_path(name).read_text(encoding="utf-8")
    assert stored == source_text(name), f"docs/timing/{name}.json is out of date: run `make generated`"


def test_no_other_sources_and_every_diagram_is_on_the_page() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(DIAGRAMS)
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"timing/{name}.svg" in text for name in DIAGRAMS)
