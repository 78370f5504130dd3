"""The planted bugs fit the source and name real tests; a bug that its test does not find is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tools.mutate import planted
from tools.mutate.bug import Bug
from tools.mutate.planted import BUGS, ROOT
from tools.testplan.plan import exists


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_fits_the_source_and_names_a_test(bug: Bug) -> None:
    text = (ROOT / bug.file).read_text()
    assert text.count(bug.right) == 1, "its text must occur once in the file"
    assert bug.wrong != bug.right
    assert exists(bug.test)


@pytest.mark.slow
def test_a_bug_is_found_and_a_harmless_change_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = next(b for b in BUGS if b.file == "hw/mac/issue/tile_loops.py")
    harmless = replace(bug, wrong=f"{bug.right}  # the same")
    monkeypatch.setattr(planted, "print", lambda *_, **__: None, raising=False)
    assert planted.survivors([bug, harmless]) == [harmless]
