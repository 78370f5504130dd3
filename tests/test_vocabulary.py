"""No source, message or page contains a word that the glossary lists as not used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.vocabulary import GLOSSARY, ROOT, hits_in, search, table

# Written backwards, so that this file contains no word of the list.
WORD = "tcidrev"[::-1]
NAMED = "rehtie"[::-1]


def words(text: str, name: str = "x.py") -> list[str]:
    """The words that are found in a text."""
    return [hit.word.lower() for hit in hits_in(Path(name), text, table())]


@pytest.mark.parametrize(
    "text",
    [
        f"# a {WORD}",
        f"class Unit{WORD.title()}: ...",
        f"unit_{WORD} = 1",
        f'raise ValueError("the {WORD.upper()} is missing")',
        f"# this {WORD}\n# is wrong",
    ],
)
def test_a_planted_word_is_found(text: str) -> None:
    assert words(text) == [WORD]


def test_a_phrase_over_two_comment_lines_is_found() -> None:
    (hit,) = hits_in(Path("x.py"), "a = 1\n# two bursts are under\n# way here\n", table())
    assert (hit.line, hit.instead) == (2, "in flight, outstanding")


def test_a_word_in_a_file_name_is_found() -> None:
    assert words("", f"unit_{WORD}.py") == [WORD]


def test_allowed_phrases_and_longer_words_pass() -> None:
    assert words("# place and route; placement; flaw; in place; emphasis") == []


def test_rows_for_names_concern_identifiers_only() -> None:
    assert words(f"{NAMED} = 1  # {NAMED} this or that") == [NAMED]


def test_every_row_has_words_and_a_replacement() -> None:
    rows = table()
    section = GLOSSARY.read_text(encoding="utf-8").partition("## Words not used here")[2]
    assert len(rows) == section.count("\n| `")
    assert all(row.words and row.instead for row in rows)


def test_the_tree_uses_none_of_these_words() -> None:
    assert [str(hit) for hit in search([ROOT])] == []
