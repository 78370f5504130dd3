"""Memory allocators. They see numbers only; all ranges are half-open."""

from abc import ABC, abstractmethod
from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable

from intloom.compiler.program.footprint import Memory
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.emit.tasks import BufferRequest, Step


class RotatingAllocator:
    """Next fit: each search starts where the last one ended, so that memory comes back into use as late as possible."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._live: list[tuple[int, int]] = []
        self._next = 0

    def allocate(self, words: int, low: int = 0) -> int | None:
        """The start of a free range that begins at `low` or later, or None."""
        start = self._search(words, max(low, self._next), self.size)
        if start is None:
            # The wrapped search ends behind `_next`, so that a free range that spans `_next` is found too.
            start = self._search(words, low, min(self.size, max(low, self._next) + words))
        if start is None:
            return None
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

    def free(self, start: int) -> None:
        """Give back the range that starts at `start`."""
        index = next(k for k, (s, _) in enumerate(self._live) if s == start)
        del self._live[index]

    def reset(self) -> None:
        """Give back everything and start at the beginning."""
        self._live.clear()
        self._next = 0


class RingAllocator:
    """A ring: ranges follow each other and wrap; space comes back when the oldest ranges are free."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._queue: deque[tuple[int, int]] = deque()
        self._dead: set[int] = set()
        self._next = 0
        self._used = 0

    @property
    def free_words(self) -> int:
        """Words that the next range may have."""
        return self.size - self._used

    def allocate(self, words: int) -> int | None:
        """The start of the next range (which may wrap), or None."""
        if self._used + words > self.size:
            return None
        start = self._next
        self._queue.append((start, words))
        self._next = (start + words) % self.size
        self._used += words
        return start

    def free(self, start: int) -> None:
        """Give back the range that starts at `start`."""
        self._dead.add(start)
        # Ranges may be freed in any order, but a ring has one gap only: space returns from the oldest end.
        while self._queue and self._queue[0][0] in self._dead:
            oldest, words = self._queue.popleft()
            self._dead.discard(oldest)
            self._used -= words

    def reset(self) -> None:
        """Give back everything and start at the beginning."""
        self._queue.clear()
        self._dead.clear()
        self._next = 0
        self._used = 0


Load = Callable[[Step, BufferRequest, int, int, int], None]
"""Emits the load of a request: task, request, first word to load, words, where the first goes."""


class LocalMemory(ABC):
    """One local memory: buffers are requested in task order and live until their last use."""

    memory: Memory

    def __init__(self, allocator: RotatingAllocator | RingAllocator, load: Load) -> None:
        self._allocated = allocator
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

    def evict(self) -> None:
        """Evict everything; later tasks load again what they request."""
        self.address.clear()
        self._allocated.reset()

    @abstractmethod
    def _free(self, request: BufferRequest, start: int) -> None: ...


class ScratchMemory(LocalMemory):
    """The scratchpad: a task gets all of its requests or none."""

    memory = Memory.SCRATCH

    def __init__(self, words: int, load: Load) -> None:
        self._allocator = RotatingAllocator(words)
        super().__init__(self._allocator, load)

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

    def _free(self, request: BufferRequest, start: int) -> None:
        self._allocator.free(start)


class WeightMemory(LocalMemory):
    """The weight memory, a ring: a chunk that does not fit yet is loaded as far as it fits, the rest later."""

    memory = Memory.WEIGHT

    def __init__(self, words: int, load: Load, piece: int = 1) -> None:
        self._ring = RingAllocator(words)
        super().__init__(self._ring, load)
        self._piece = piece
        """Parts of a chunk but the last are multiples of this."""
        self._pieces: dict[Hashable, list[tuple[int, int]]] = {}

    def acquire(self, task: Step, low: int = 0) -> bool:
        """See `LocalMemory.acquire`; the whole ring is used."""
        for request in self.missing(task):
            pieces = self._pieces.setdefault(request.key, [])
            # Pieces of an earlier attempt are already in the instruction stream, so this attempt continues after
            # them.
            loaded = sum(words for _, words in pieces)
            free = self._ring.free_words
            words = min(request.words - loaded, free)
            if loaded + words < request.words:
                words = free - free % self._piece
            # Each piece costs an instruction. The last piece of a chunk may be small.
            least = request.words if request.parts else tuning.MIN_PIECE
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
        super().evict()
        self._pieces.clear()

    def _free(self, request: BufferRequest, start: int) -> None:
        for first, _ in self._pieces.pop(request.key):
            self._ring.free(first)
