"""Liveness of data in local memory along the instruction stream, and the loads that bring it there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable

from intloom.compiler.program.footprint import Memory
from intloom.compiler.schedule.alloc import RingAllocator, RotatingAllocator
from intloom.compiler.schedule.tasks import BufferRequest, Step

Load = Callable[[Step, BufferRequest, int, int, int], None]
"""Emits the load of a request: task, request, first word to load, words, where the first goes."""

LEAST_PIECE = 128
"""Smallest part of a weight chunk that is worth a load of its own."""


class LocalMemory(ABC):
    """One local memory: buffers are requested in task order and live until their last use."""

    memory: Memory

    def __init__(self, load: Load) -> None:
        self.address: dict[Hashable, int] = {}
        self._uses: Counter[Hashable] = Counter()
        self._load = load

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
                self._free(request, self.address.pop(request.key))

    @abstractmethod
    def acquire(self, task: Step, low: int = 0) -> bool:
        """Allocate everything that a task still requests, from address `low` on, and emit the loads.

        False if it does not fit.
        """

    @abstractmethod
    def evict(self) -> None:
        """Evict everything; later tasks load again what they request."""

    @abstractmethod
    def _free(self, request: BufferRequest, start: int) -> None: ...


class ScratchMemory(LocalMemory):
    """The scratchpad: a task gets all of its requests or none."""

    memory = Memory.SCRATCH

    def __init__(self, words: int, load: Load) -> None:
        super().__init__(load)
        self._allocator = RotatingAllocator(words)

    def acquire(self, task: Step, low: int = 0) -> bool:
        """See `LocalMemory.acquire`."""
        # Loads are emitted only after everything fits: an emitted LOAD could not be taken back.
        got: list[tuple[BufferRequest, int]] = []
        for request in self.missing(task):
            start = self._allocator.allocate(request.words, low)
            if start is None:
                for _, taken in got:
                    self._allocator.free(taken)
                return False
            got.append((request, start))
        for request, start in got:
            self.address[request.key] = start
            self._load(task, request, 0, request.words, start)
        return True

    def evict(self) -> None:
        """See `LocalMemory.evict`."""
        self.address.clear()
        self._allocator.reset()

    def _free(self, request: BufferRequest, start: int) -> None:
        self._allocator.free(start)


class WeightMemory(LocalMemory):
    """The weight memory, a ring: a chunk that does not fit yet is loaded as far as it fits, the rest later."""

    memory = Memory.WEIGHT

    def __init__(self, words: int, load: Load) -> None:
        super().__init__(load)
        self._ring = RingAllocator(words)
        self._pieces: dict[Hashable, list[tuple[int, int]]] = {}

    def acquire(self, task: Step, low: int = 0) -> bool:
        """See `LocalMemory.acquire`; the whole ring is used."""
        for request in self.missing(task):
            pieces = self._pieces.setdefault(request.key, [])
            # Pieces of an earlier attempt are already in the instruction stream, so this attempt continues after
            # them.
            loaded = sum(words for _, words in pieces)
            words = min(request.words - loaded, self._ring.free_words)
            # Each piece costs an instruction. The last piece of a chunk may be small.
            least = request.words if request.parts else LEAST_PIECE
            if words < min(request.words - loaded, least):
                return False
            start = self._ring.allocate(words)
            if start is None:
                return False
            pieces.append((start, words))
            self._load(task, request, loaded, words, start)
            if loaded + words < request.words:
                return False
            # Pieces follow each other in the ring, so the chunk is in one piece again.
            self.address[request.key] = pieces[0][0]
        return True

    def evict(self) -> None:
        """See `LocalMemory.evict`."""
        self.address.clear()
        self._pieces.clear()
        self._ring.reset()

    def _free(self, request: BufferRequest, start: int) -> None:
        for first, _ in self._pieces.pop(request.key):
            self._ring.free(first)
