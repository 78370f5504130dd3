"""Cover points from the specification: values of every instruction field, and pairs of instructions of one unit."""

from collections.abc import Iterable, Iterator
from itertools import product

from intloom.hw.spec.fields import HEADER, Field
from intloom.hw.spec.isa import BY_KIND, QUEUED_UNITS, Instruction, Unit

PAIR = " then "
"""Between the two kinds of a pair's name."""


def bins(field: Field) -> dict[str, range]:
    """Ranges of a field's values, by name."""
    low, high = field.minimum, field.maximum
    if field.width == 1:
        return {"0": range(1), "1": range(1, 2)}
    found = {"smallest": range(low, low + 1)}
    if field.signed:
        found |= {"negative": range(low, 0), "positive": range(1, high + 1)}
    half = (high + 1) // 2
    return found | {"lower half": range(max(low, 0), half), "upper half": range(half, high + 1)}


def cover_points() -> Iterator[str]:
    """All points, by name."""
    kinds = [spec for spec in BY_KIND.values() if spec.unit in QUEUED_UNITS]
    for spec in kinds:
        yield from (f"{spec.kind}.{f.name} {b}" for f in spec.body for b in bins(f))
    for unit in QUEUED_UNITS:
        own = [spec.kind for spec in kinds if spec.unit is unit]
        yield from (f"{first}{PAIR}{second}" for first, second in product(own, own))


def reached(program: Iterable[Instruction]) -> Iterator[str]:
    """The points that a program reaches."""
    last: dict[Unit, str] = {}
    for i in program:
        if i.unit not in QUEUED_UNITS:
            continue
        for field in i.spec.fields[len(HEADER) :]:
            yield from (
                f"{i.kind}.{field.name} {name}" for name, values in bins(field).items() if i[field.name] in values
            )
        if i.unit in last:
            yield f"{last[i.unit]}{PAIR}{i.kind}"
        last[i.unit] = i.kind
