"""One HTML page: a table of modules, and what was not reached."""

import html
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tools.coverage.counts import Point
from tools.coverage.waivers import Waiver, waiver_of

KINDS = ("line", "branch", "toggle")
_MOST_SHOWN = 200


@dataclass
class Tally:
    """Points of one kind."""

    reached: int = 0
    waived: int = 0
    missed: list[Point] = field(default_factory=list)

    @property
    def percent(self) -> float:
        """Share of the points without a waiver that were reached."""
        return 100 * self.reached / max(1, self.reached + len(self.missed))


def tallies(
    counts: Mapping[Point, int], waivers: Sequence[Waiver], verilog: Sequence[str] = ()
) -> dict[tuple[str, str], Tally]:
    """Tallies by module and kind; `verilog` are the lines of the source."""
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    for point, count in sorted(counts.items()):
        tally = tallies[point.module, point.kind]
        if count:
            tally.reached += 1
        elif waiver_of(point, waivers, verilog) is not None:
            tally.waived += 1
        else:
            tally.missed.append(point)
    return tallies


def total(found: Mapping[tuple[str, str], Tally], kind: str) -> Tally:
    """The sum over all modules."""
    of_kind = [tally for (_, k), tally in found.items() if k == kind]
    missed = [point for tally in of_kind for point in tally.missed]
    return Tally(sum(t.reached for t in of_kind), sum(t.waived for t in of_kind), missed)


def _percent(tally: Tally) -> str:
    """The share; a module without points of a kind has none."""
    return f"{tally.percent:.1f} %" if tally.reached or tally.missed else "-"


def _row(name: str, cells: Iterable[Tally]) -> str:
    text = "".join(
        f"<td>{_percent(t)}</td><td>{t.reached}</td><td>{len(t.missed)}</td><td>{t.waived}</td>" for t in cells
    )
    return f"<tr><th>{html.escape(name)}</th>{text}</tr>"


def _missed(found: Mapping[tuple[str, str], Tally]) -> str:
    parts = []
    for (module, kind), tally in sorted(found.items()):
        if tally.missed:
            shown = ", ".join(f"{p.line} {html.escape(p.name)}" for p in tally.missed[:_MOST_SHOWN])
            more = len(tally.missed) - _MOST_SHOWN
            parts.append(
                f"<h3>{html.escape(module)}: {kind}</h3><p>{shown}{f', and {more} more' if more > 0 else ''}</p>"
            )
    return "".join(parts)


def page(
    found: Mapping[tuple[str, str], Tally],
    waivers: Sequence[Waiver],
    points: Sequence[str],
    seen: Counter[str],
    excluded: Sequence[str] = (),
) -> str:
    """The page; `points` are all functional cover points, `seen` counts those that were reached.

    `excluded` says which points there cannot be, and why.
    """
    modules = sorted({module for module, _ in found})
    heads = "".join(f'<th colspan="4">{kind}: reached, number, missed, waived</th>' for kind in KINDS)
    rows = [_row("all modules", [total(found, kind) for kind in KINDS])]
    rows += [_row(module, [found.get((module, kind), Tally()) for kind in KINDS]) for module in modules]
    open_points = [point for point in points if not seen[point]]
    functional = f"{len(points) - len(open_points)} of {len(points)} cover points reached."
    reasons = "".join(f"<li>{html.escape(f'{w.module} {w.kind} {w.name}: {w.reason}')}</li>" for w in waivers)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Coverage</title>'
        "<style>body{font-family:sans-serif;margin:2em}td{text-align:right;padding:0 .4em}th{text-align:left}</style>"
        f"<h1>Coverage</h1><h2>Fields, pairs of instructions, events in states</h2><p>{functional}</p>"
        f"<p>{html.escape(', '.join(open_points))}</p>"
        f"<p>Impossible:</p><ul>{''.join(f'<li>{html.escape(text)}</li>' for text in excluded)}</ul>"
        f"<h2>RTL</h2><table><tr><th>module</th>{heads}</tr>{''.join(rows)}</table>"
        f"<h2>Waivers</h2><ul>{reasons}</ul><h2>Not reached</h2>{_missed(found)}</html>\n"
    )
