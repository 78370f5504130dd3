"""What limits a run, by how much, and the smallest change that would lift it."""

from collections.abc import Sequence
from dataclasses import dataclass

from intloom.common.errors import ParameterError
from intloom.exploration.work import Cycles, Work
from intloom.hw.spec.params import POWERS, HardwareParams, changed

_WORDS = {
    "array": "the array, with useful products",
    "partial": "the array, with empty lanes and short tiles",
    "vector": "the vector unit",
    "memory": "the memory port",
    "weights": "loads of weights",
    "start": "starts and ends of layers and of the program",
}
"""What each part of the cycles goes to."""
_CHANGES = {
    "array": ("rows", "cols"),
    "partial": ("weight_kib", "scratch_kib"),
    "vector": ("vector_lanes", "lanes"),
    "memory": ("scratch_kib",),
    "weights": ("weight_kib",),
    "start": ("scratch_kib",),
}
"""Fields whose next value may lift a limit."""
_LEAST_GAIN = 0.005


@dataclass(frozen=True)
class Change:
    """One field at its next value, and what that does."""

    name: str
    before: Work
    after: Work
    old: HardwareParams
    new: HardwareParams
    misses: str = ""
    """What it exceeds most, in words."""

    @property
    def cycles(self) -> float:
        """Relative change of the cycles."""
        return self.after.cycles.total / self.before.cycles.total - 1

    @property
    def traffic(self) -> float:
        """Relative change of the bytes that cross the memory port."""
        return self.after.dram * self.new.word_bytes / max(1, self.before.dram * self.old.word_bytes) - 1

    def __str__(self) -> str:
        # `z`: a small decrease is 0, not -0.
        text = f"{self.name}: {self.cycles:+z.0%} cycles, {self.traffic:+z.0%} traffic".replace("+0%", "0%")
        return f"{text}, but does not fit: {self.misses}" if self.misses else text


def binding(cycles: Cycles) -> list[tuple[str, float]]:
    """The parts of the cycles with their shares, largest first."""
    shares = {name: getattr(cycles, name) / cycles.total for name in _WORDS} if cycles.total else {}
    return sorted(shares.items(), key=lambda item: -item[1])


def changes_of(params: HardwareParams, cycles: Cycles) -> dict[str, HardwareParams]:
    """Parameters with one field at its next value, for the largest part of the cycles and the largest loss."""
    parts = [name for name, _ in binding(cycles)]
    losses = [name for name in parts if name != "array"]
    changes: dict[str, HardwareParams] = {}
    for field in dict.fromkeys(f for part in (*parts[:1], *losses[:1]) for f in _CHANGES[part]):
        value = 2 * getattr(params, field)
        if value > POWERS[field][1]:
            continue
        try:
            changes[f"{field} {value}"] = changed(params, {field: value})
        except ParameterError:
            continue
    return changes


def explain(cycles: Cycles, changes: Sequence[Change] = ()) -> str:
    """What limits a run, by how much, and what to change."""
    parts = binding(cycles)
    if not parts:
        return ""
    (first, share), *rest = parts
    text = f"{share:.0%} of the cycles go to {_WORDS[first]}"
    if lost := next(((name, part) for name, part in rest if name != "array" and part >= _LEAST_GAIN), None):
        text += f"; the largest other part, {lost[1]:.1%}, to {_WORDS[lost[0]]}"
    useful = [c for c in changes if min(c.cycles, c.traffic) < -_LEAST_GAIN]
    # What fits comes first, and a field that is cheap to enlarge before another array.
    useful.sort(key=lambda c: (c.misses != "", c.name.startswith(("rows", "cols")), c.cycles + c.traffic / 4))
    return f"{text}. {'; '.join(map(str, useful[:2]))}".strip() if useful else f"{text}."
