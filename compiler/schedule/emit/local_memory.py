"""The two local memories while a program is emitted: what is in them, and where. All ranges are half-open."""

from abc import ABC, abstractmethod
from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from typing import ClassVar

from intloom.compiler.program.footprint import Memory
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.emit.tasks import BufferRequest, Step

Load = Callable[[Step, BufferRequest, int, int, int], None]
"""Emits the load of a request: task, request, first word to load, words, where the first goes."""


class LocalMemory(ABC):
    """One local memory: buffers are requested in task order and live until their last use."""

    memory: ClassVar[Memory]

    def __init__(self, size: int, load: Load) -> None:
        self.size = size
        self.address: dict[Hashable, int] = {}
        self._uses: Counter[Hashable] = Counter()
        self._load = load
        self._next = 0
        """Where the next range starts, or the search for it."""

    def expect(self, tasks: Iterable[Step]) -> None:
        """Count the uses of each buffer."""
        for task in tasks:
            self._uses.update(n.key for n in task.requests(self.memory))

    def missing(self, task: Step) -> list[BufferRequest]:
        """The requests of a task that are not in memory."""
        return list({n.key: n for n in task.requests(self.memory) if n.key not in self.address}.values())

    def release(self, task: Step) -> None:
        """Note that a task has been emitted, and free what nothing will use again."""
        for request in task.requests(self.memory):
            self._uses[request.key] -= 1
            if not self._uses[request.key] and request.key in self.address:
                self._free(request.key, self.address.pop(request.key))

    @abstractmethod
    def acquire(self, task: Step, low: int = 0) -> bool:
        """Allocate everything that a task still requests, from address `low` on, and emit the loads.

        False if it does not fit.
        """

    def evict(self) -> None:
        """Evict everything; later tasks load again what they request."""
        self.address.clear()
        self._next = 0

    @abstractmethod
    def _free(self, key: Hashable, start: int) -> None: ...


class ScratchMemory(LocalMemory):
    """The scratchpad: a task gets all of its requests or none.

    Next fit: each search starts where the last one ended, so that memory comes back into use as late as possible.
    """

    memory = Memory.SCRATCH

    def __init__(self, size: int, load: Load) -> None:
        super().__init__(size, load)
        self._live: list[tuple[int, int]] = []

    def acquire(self, task: Step, low: int = 0) -> bool:
        """See `LocalMemory.acquire`."""
        # Loads are emitted only after everything fits: an emitted LOAD could not be taken back.
        got: list[tuple[BufferRequest, int]] = []
        for request in self.missing(task):
            start = self._allocate(request.words, low)
            if start is None:
                for taken, at in got:
                    self._free(taken.key, at)
                return False
            got.append((request, start))
        for request, start in got:
            self.address[request.key] = start
            self._load(task, request, 0, request.words, start)
        return True

    def evict(self) -> None:
        """See `LocalMemory.evict`."""
        super().evict()
        self._live.clear()

    def _allocate(self, words: int, low: int) -> int | None:
        """The start of a free range that begins at `low` or later, or None."""
        start = self._search(words, max(low, self._next), self.size)
        if start is None:
            # The wrapped search ends behind `_next`, so that a free range that spans `_next` is found too.
            start = self._search(words, low, min(self.size, max(low, self._next) + words))
        if start is not None:
            insort(self._live, (start, start + words))
            self._next = start + words
        return start

    def _search(self, words: int, low: int, high: int) -> int | None:
        at = low
        for start, end in self._live:
            if end <= at:
                continue
            # `_live` is sorted, so the first gap that is wide enough is the nearest one.
            if start - at >= words:
                break
            at = end
        return at if at + words <= high else None

    def _free(self, key: Hashable, start: int) -> None:
        del self._live[next(k for k, (s, _) in enumerate(self._live) if s == start)]


class WeightMemory(LocalMemory):
    """The weight memory, a ring: a chunk that does not fit yet is loaded as far as it fits, the rest later.

    Pieces follow each other and wrap; their space comes back when all older ones are free too.
    """

    memory = Memory.WEIGHT

    def __init__(self, size: int, load: Load, piece: int = 1) -> None:
        super().__init__(size, load)
        self._piece = piece
        """Parts of a chunk but the last are multiples of this."""
        self._pieces: dict[Hashable, list[int]] = {}
        """Words of the pieces of each chunk that is loaded, or is being loaded."""
        self._queue: deque[tuple[Hashable, int]] = deque()
        """The chunks and words of all pieces in the ring."""

    def acquire(self, task: Step, low: int = 0) -> bool:
        """See `LocalMemory.acquire`; the whole ring is used."""
        for request in self.missing(task):
            # Pieces of an earlier attempt are already in the instruction stream, so this attempt continues after
            # them.
            pieces = self._pieces.setdefault(request.key, [])
            loaded = sum(pieces)
            free = self.size - sum(words for _, words in self._queue)
            words = min(request.words - loaded, free)
            if loaded + words < request.words:
                words = free - free % self._piece
            # Each piece costs an instruction. The last piece of a chunk may be small.
            least = tuning.MIN_PIECE if isinstance(request.content, bytes) else request.words
            if words < min(request.words - loaded, least):
                return False
            start, self._next = self._next, (self._next + words) % self.size
            pieces.append(words)
            self._queue.append((request.key, words))
            self._load(task, request, loaded, words, start)
            if loaded + words < request.words:
                return False
            # Pieces follow each other in the ring, so the chunk is in one piece again.
            self.address[request.key] = (start - loaded) % self.size
        return True

    def evict(self) -> None:
        """See `LocalMemory.evict`."""
        super().evict()
        self._pieces.clear()
        self._queue.clear()

    def _free(self, key: Hashable, start: int) -> None:
        del self._pieces[key]
        # Chunks may be freed in any order, but a ring has one gap only.
        while self._queue and self._queue[0][0] not in self._pieces:
            self._queue.popleft()
