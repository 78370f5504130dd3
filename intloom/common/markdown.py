"""Markdown tables, and those of a page that come from recorded figures."""

from collections.abc import Iterable, Sequence


def line(*cells: object) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(heads: Sequence[str], lines: Iterable[str]) -> str:
    """A table with these heads."""
    return "".join(f"{text}\n" for text in (line(*heads), "|" + "---|" * len(heads), *lines))


def filled(page: str, name: str, content: str) -> str:
    """The page with everything between the markers of a name replaced; prose around them is kept."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, rest = page.split(start)
    return f"{before}{start}\n{content}\n{end}{rest.split(end)[1]}"
