"""Sections of a Python source: its functions with their docstrings, and the comments before their statements."""

import ast
import io
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_HARDWARE = Path(__file__).parents[1]
"""The folder in which paths begin."""


@dataclass(frozen=True)
class Comment:
    """A comment, and the lines of what it stands before."""

    lines: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True)
class Section:
    """A function: its lines, what it does, and its comments in order."""

    name: str
    first: int
    last: int
    title: str
    comments: tuple[Comment, ...]


def section_at(path: str, line: int) -> Section | None:
    """The innermost function of a file around a line."""
    around = [section for section in _sections(path) if section.first <= line <= section.last]
    return max(around, key=lambda section: section.first, default=None)


@lru_cache
def _parsed(path: str) -> tuple[str, ast.Module]:
    text = (_HARDWARE / path).read_text(encoding="utf-8")
    return text, ast.parse(text)


@lru_cache
def _sections(path: str) -> tuple[Section, ...]:
    text, tree = _parsed(path)
    comments = list(_comments(text, tree))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return tuple(
        Section(
            node.name,
            node.lineno,
            node.end_lineno or node.lineno,
            _title(node),
            tuple(c for c in comments if node.lineno <= c.first and c.last <= (node.end_lineno or node.lineno)),
        )
        for node in functions
    )


def _title(function: ast.FunctionDef) -> str:
    first_paragraph = (ast.get_docstring(function) or "").partition("\n\n")[0]
    said = " ".join(first_paragraph.split())
    name = function.name.lstrip("_").replace("_", " ")
    return said if function.name == "elaborate" and said else f"{name}: {said}" if said else name


def _comments(text: str, tree: ast.Module) -> Iterator[Comment]:
    """Comments that have lines to themselves, with the statement or expression that begins behind them."""
    ends: dict[int, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            last = node.end_lineno or node.lineno
            ends[node.lineno] = max(ends.get(node.lineno, 0), last)
    starts = sorted(ends)
    lines: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            lines.append(token.string.lstrip("# "))
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT) and lines:
            at = bisect_right(starts, token.start[0] - 1)
            if at < len(starts):
                yield Comment(tuple(lines), starts[at], ends[starts[at]])
            lines = []


@lru_cache
def _assigned(path: str) -> dict[int, list[str]]:
    """Names on the left of each assignment to several, by the line that it begins in."""
    _, tree = _parsed(path)
    tuples = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple)]
    return {
        node.lineno: [
            name.id if isinstance(name, ast.Name) else name.attr
            for name in ast.walk(node.targets[0])
            if isinstance(name, ast.Attribute) or (isinstance(name, ast.Name) and name.id != "self")
        ]
        for node in tuples
    }


def assigned_names(path: str, line: int) -> list[str]:
    """Names that an assignment to several gives on this line; Amaranth sees one of them at most."""
    return _assigned(path).get(line, [])
