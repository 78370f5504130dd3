"""Which words of which tensors the instructions write in the scratchpad, for comparisons and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from intloom.compiler.emit.emitter import Emitter
from intloom.compiler.program.program import LocalResult
from intloom.compiler.schedule.geometry import Buffer, Rect, View
from intloom.compiler.schedule.local_buffer import LocalBuffer
from intloom.compiler.schedule.tasks import Task
from intloom.hw.spec.isa import Unit


class LocalRecord:
    """Collects the results in local buffers while a program is emitted."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self._numbers: dict[Buffer, int] = {}
        self._written: Counter[tuple[Buffer, int]] = Counter()
        self.results: list[LocalResult] = []

    def record(self, task: Task, first: int) -> None:
        """Record the instructions of a task, which start at `first`."""
        targets = list(_targets(task))
        for index in range(first, len(self._emitter.instructions) if targets else first):
            instruction = self._emitter.instructions[index]
            if instruction.unit not in (Unit.MAC, Unit.VEC):
                continue
            access = self._emitter.results[index]
            for local, rect in targets:
                if access.write and local.address <= access.base < local.address + local.words:
                    self._add(index, local, rect, access.base, access.dims)

    def _add(self, index: int, local: LocalBuffer, rect: Rect, base: int, dims: tuple[tuple[int, int], ...]) -> None:
        block, rest = divmod(base - local.address - local.guard, local.rows * local.row)
        row, x = divmod(rest, local.row)
        y = rect.y0 + (row - rect.y0) % local.rows
        number = self._numbers.setdefault(local.buffer, len(self._numbers))
        self.results.append(LocalResult(index, number, local.first + block, y, x))
        for k in range(dims[0][0]):
            self._written[local.buffer, local.first + block + k] += dims[1][0] * dims[2][0]

    def number(self, view: View) -> int | None:
        """The number of a view's buffer, if all its words were recorded."""
        whole = all(self._written[view.buffer, b] >= view.buffer.plane for b in _blocks(view))
        return self._numbers.get(view.buffer) if whole else None


def _blocks(view: View) -> range:
    rows = view.buffer.params.rows
    return range(view.first_block, (view.channel + view.channels - 1) // rows + 1)


def _targets(task: Task) -> Iterator[tuple[LocalBuffer, Rect]]:
    """The local buffers that a task writes, and the rectangle in each."""
    for region in task.results:
        local = task.slot.local.get(region.buffer)
        if local is not None:
            yield local, region.rect
