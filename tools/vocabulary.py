"""Find words that the project does not use; docs/glossary.md lists them with their replacements.

`python -m tools.vocabulary [paths]` prints one line per use and exits with 1 if there is any. Without paths it reads
every text file of the checkout.
"""

from __future__ import annotations

import os
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs/glossary.md"
HEADING = "## Words not used here"
_ROW = re.compile(r"^\| (?P<words>`.*?) \| (?P<instead>.*?) \| (?P<exceptions>.*?) ?\|$", re.MULTILINE)
_NAMES_ONLY = "names"

_CODE = (".cpp", ".css", ".h", ".html", ".j2", ".js", ".py", ".rdl", ".sh", ".v", ".vh", ".ys")
_TEXT = (".cff", ".json", ".md", ".svg", ".toml", ".txt", ".yaml", ".yml")
SUFFIXES = frozenset((*_CODE, *_TEXT))
_BARE_NAMES = frozenset({"Makefile", "run", ".gitignore", ".editorconfig"})
_SKIPPED_FOLDERS = frozenset({".git", ".venv", "build", "dist", "out", "site", "__pycache__"})
# Words between which a line may end, inside a comment too.
_GAP = r"[\s#/*]+"


@dataclass(frozen=True)
class Row:
    """Words that are not used, what to write, and phrases in which they are allowed."""

    words: tuple[str, ...]
    instead: str
    exceptions: tuple[str, ...]

    @property
    def names_only(self) -> bool:
        """Whether the words are allowed outside identifiers."""
        return _NAMES_ONLY in self.exceptions

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches a word in text whose identifiers are split."""
        return _pattern(self.words)

    @cached_property
    def allowed(self) -> re.Pattern[str] | None:
        """Matches the phrases in which a word is allowed."""
        phrases = tuple(e for e in self.exceptions if e != _NAMES_ONLY)
        return _pattern(phrases) if phrases else None

    @cached_property
    def begins(self) -> re.Pattern[str]:
        """Matches, in `words_of` a text, the first word of a phrase: faster than a search for the phrases."""
        first = (re.match(r"[a-z]*\*?", phrase.lower()) for phrase in self.words)
        return re.compile("|".join(rf" {m[0].replace('*', '[a-z]*')} " for m in first if m))

    def uses(self, text: str) -> Iterator[tuple[int, str]]:
        """Offset and spelling of each use in split text."""
        allowed = [m.span() for m in self.allowed.finditer(text)] if self.allowed else []
        for found in self.pattern.finditer(text):
            if not any(start <= found.start() and found.end() <= end for start, end in allowed):
                yield found.start(), found.group()


@dataclass(frozen=True)
class Hit:
    """One use of a word that the project does not use."""

    path: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        """File and line first, as compilers print them."""
        return f"{self.path}:{self.line}: {' '.join(self.word.split())!r}: write {self.instead}"


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    each = (_GAP.join(re.escape(word).replace(r"\*", "[a-z]*") for word in phrase.split()) for phrase in phrases)
    return re.compile(rf"(?<![a-z])(?:{'|'.join(each)})(?![a-z])", re.IGNORECASE)


def table() -> tuple[Row, ...]:
    """The rows of the glossary's table."""
    section = GLOSSARY.read_text(encoding="utf-8").partition(HEADING)[2]
    return tuple(
        Row(_quoted(m["words"]), m["instead"].replace("`", ""), _quoted(m["exceptions"]))
        for m in _ROW.finditer(section)
    )


def _quoted(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def split_identifiers(text: str) -> str:
    """The text with spaces in identifiers, at underscores and before capitals; no line moves."""
    spaced = text.replace("_", " ")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", spaced)


def names_of(path: Path, text: str) -> str:
    """Only the identifiers of a Python source, on their lines; other files have none."""
    if path.suffix != ".py":
        return ""
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.NAME:
            lines[token.start[0] - 1] += f" | {token.string}"
    return "\n".join(lines)


def words_of(text: str) -> str:
    """Each word of a text once, between two spaces."""
    return "".join(f" {word} " for word in sorted(set(re.findall("[a-z]+", text.lower()))))


def hits_in(path: Path, text: str, rows: tuple[Row, ...]) -> list[Hit]:
    """Every use in a file's name and text."""
    whole, names = split_identifiers(text), split_identifiers(names_of(path, text))
    title = split_identifiers(path.name)
    present = words_of(f"{title} {whole}")
    found = []
    for row in rows:
        if not row.begins.search(present):
            continue
        found += [Hit(path, 1, word, f"{row.instead} (file name)") for _, word in row.uses(title)]
        searched = names if row.names_only else whole
        found += [Hit(path, searched.count("\n", 0, at) + 1, word, row.instead) for at, word in row.uses(searched)]
    return sorted(found, key=lambda h: h.line)


def readable(path: Path) -> str:
    """The text in which words are looked for: the table of words itself is left out."""
    text = path.read_text(encoding="utf-8")
    return text.partition(HEADING)[0] if path.resolve() == GLOSSARY else text


def text_files(folder: Path) -> Iterator[Path]:
    """Text files below a folder; links are not followed, so that each file appears once."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED_FOLDERS)
        paths = (Path(parent, name) for name in sorted(files))
        yield from (p for p in paths if p.suffix in SUFFIXES or p.name in _BARE_NAMES)


def search(paths: list[Path]) -> list[Hit]:
    """Every use in files, and in text files of folders."""
    rows = table()
    files = [f for p in paths for f in (text_files(p) if p.is_dir() else [p])]
    return [hit for f in files for hit in hits_in(f, readable(f), rows)]


def main(arguments: list[str]) -> int:
    """Print every use in the given paths, or in the checkout."""
    hits = search([Path(a) for a in arguments] or [ROOT])
    for hit in hits:
        print(hit)
    print(f"{len(hits)} found", file=sys.stderr)
    return bool(hits)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
