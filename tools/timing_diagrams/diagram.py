"""WaveDrom sources from recorded signals."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Recording = Mapping[str, Sequence[int]]
"""Values by signal and cycle; cycle 0 ends with the first rising clock edge."""


@dataclass(frozen=True)
class Row:
    """One signal of a diagram: `module.submodule.attribute`, or of a module the name of a signal inside.

    `show` gives a multi-bit value's text; where `valid` names a signal, values count only while that is high.
    """

    label: str
    signal: str
    show: Callable[[int], str] | None = None
    valid: str | None = None
    bit: int | None = None
    """Only this bit of the signal."""


@dataclass(frozen=True)
class Diagram:
    """A diagram: which rows of a recording, from which cycle, how many cycles.

    `start` names a signal: the diagram begins `lead` cycles before it is first high.
    """

    title: str
    start: str
    lead: int
    cycles: int
    rows: Sequence[Row | str]
    """A string begins a group of rows."""
    after: int = 0
    """Skip so many cycles in which `start` is high."""
    notes: Sequence[str] = field(default=())

    @property
    def signals(self) -> Iterator[str]:
        """What has to be recorded."""
        yield self.start
        for row in self.rows:
            if isinstance(row, Row):
                yield from filter(None, (row.signal, row.valid))

    def source(self, recording: Recording) -> dict[str, Any]:
        """The diagram in WaveDrom's format."""
        high = [cycle for cycle, value in enumerate(recording[self.start]) if value]
        window = slice(high[self.after] - self.lead, high[self.after] - self.lead + self.cycles)
        groups: list[Any] = [{"name": "clk", "wave": "p" + "." * (self.cycles - 1)}]
        target = groups
        for row in self.rows:
            if isinstance(row, str):
                target = [row]
                groups.append(target)
            else:
                target.append(_lane(row, recording, window))
        return {
            "signal": groups,
            "head": {"text": self.title, "tick": 0},
            "foot": {"text": " ".join(self.notes)},
            "config": {"hscale": 1},
        }

    def text(self, recording: Recording) -> str:
        """The source file: JSON, one signal a line."""
        return json.dumps(self.source(recording), indent=1) + "\n"


def _lane(row: Row, recording: Recording, window: slice) -> dict[str, Any]:
    values = recording[row.signal][window]
    if row.bit is not None:
        values = [v >> row.bit & 1 for v in values]
    if row.show is None:
        return {"name": row.label, "wave": _wave([str(v) for v in values])}
    shown: list[str | None] = [row.show(v) for v in values]
    if row.valid is not None:
        counts = recording[row.valid][window]
        shown = [text if count else None for text, count in zip(shown, counts, strict=True)]
    wave, data, previous = "", [], object()
    for text in shown:
        if text == previous:
            wave += "."
        elif text is None:
            wave += "x"
        else:
            wave += "="
            data.append(text)
        previous = text
    return {"name": row.label, "wave": wave, "data": data}


def _wave(values: list[str]) -> str:
    """Single bits; a repeated level is a dot."""
    return "".join("." if i and v == values[i - 1] else v for i, v in enumerate(values))
