"""Programs that reach named cover points: one legal instruction for each, between random neighbors."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from intloom.common.errors import IntloomError
from intloom.hw.spec.isa import BY_KIND, Instruction, Kind, Unit
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.sim.random_programs.instructions import InstructionMaker
from intloom.sim.random_programs.program import (
    NO_LAG,
    RandomProgram,
    Step,
    constant_loads,
    is_legal,
    random_program,
)
from tests.hw.coverage.fields import PAIR, bins

_ATTEMPTS = 3000
_STEPS = 20
"""Instructions of a program: a difference then names few of them."""
_FIRST_WORDS = (0, 64)
"""Memory words at the base, for offsets of 0."""


def _fits_word(i: Instruction, params: HardwareParams) -> bool:
    """Whether the fields that count bytes of a word suit this hardware's words."""
    values, word = i.values, params.word_bytes
    lane, last = values.get("out_lane", 0), values.get("first_byte", 0) + values.get("byte_count", 1) - 1
    lanes = (lane, values.get("rotate", 0), last, values.get("last_bytes", 1) - 1)
    return max(lanes) < word and lane % params.lanes == 0


class _Search:
    """Random legal instructions for the memory of one program."""

    def __init__(self, program: RandomProgram) -> None:
        self._rng = random.Random(program.seed)
        self._params, self._islands = program.params, list(program.islands)
        self._maker = InstructionMaker(self._rng, program.params, self._islands)
        # `steps` loads them.
        self._maker.exponentials.update(range(EXPONENTIAL_BYTES))

    def any(self, kind: Kind) -> Instruction | None:
        """A legal instruction."""
        candidates = (self._maker.instruction(kind) for _ in range(_ATTEMPTS))
        return next((i for i in candidates if is_legal(i, self._params, self._islands)), None)

    def with_value(self, kind: Kind, name: str, values: range) -> Instruction | None:
        """A legal instruction with one of these values in a field; of two equal factors, in both."""
        required = BY_KIND[kind].field(name).requires
        if required and not getattr(self._params, required):
            return None
        names = ("m1", "m2") if BY_KIND[kind].one_factor and name in ("m1", "m2") else (name,)
        for _ in range(_ATTEMPTS):
            value = self._rng.choice((values[0], values[-1], self._rng.choice(values)))
            try:
                found = self._maker.instruction(kind).with_fields(**dict.fromkeys(names, value))
                if _fits_word(found, self._params) and is_legal(found, self._params, self._islands):
                    return found
            except IntloomError:
                continue
        return None

    def steps(self, program: RandomProgram, instructions: Iterable[Instruction]) -> Iterator[Step]:
        """The instructions with what they need before them: exponentials, tables, and constants of convolutions."""
        loaded: set[Unit] = set()
        wanted = [*instructions]
        if any(i.kind is Kind.VSOFTMAX for i in wanted):
            parts = (self.with_value(Kind.VEXP, "part", range(p, p + 1)) for p in range(EXPONENTIAL_BYTES))
            yield from (Step(part, NO_LAG) for part in parts if part is not None)
        for i in wanted:
            if i.values.get("table") and i.unit is Unit.VEC and i.unit not in loaded:
                table = self.any(Kind.VTABLE)
                loaded.add(i.unit)
                if table is not None:
                    yield Step(table, NO_LAG)
            yield from constant_loads(self._rng, i, program.params, program.constants_word)
            if i.values.get("continue_sums"):
                yield Step(i.with_fields(continue_sums=0), NO_LAG)
            yield Step(i, NO_LAG)


def _sequence(search: _Search, point: str) -> list[Instruction]:
    """The instructions that reach a point, none if no legal one was found."""
    if PAIR in point:
        found = [search.any(Kind(name)) for name in point.split(PAIR)]
    else:
        where, _, name = point.partition(" ")
        kind, _, field = where.partition(".")
        values = bins(BY_KIND[Kind(kind)].field(field))[name]
        found = [search.with_value(Kind(kind), field, values)]
    return [i for i in found if i is not None] if None not in found else []


def _memory(seed: int, params: HardwareParams) -> RandomProgram:
    """A program without instructions, whose moves may use the first words at the base."""
    program = random_program(seed, params).with_steps([])
    first = min([*program.contents(), program.result_word])
    islands = (_FIRST_WORDS, *program.islands) if first >= sum(_FIRST_WORDS) else program.islands
    return replace(program, islands=islands)


def directed_programs(points: Sequence[str], params: HardwareParams, seed: int) -> Iterator[RandomProgram]:
    """Legal programs that reach as many of the points as a search finds."""
    for number in range(0, len(points), _STEPS // 2):
        program = _memory(seed + number, params)
        search = _Search(program)
        sequences = (_sequence(search, point) for point in points[number : number + _STEPS // 2])
        # Tables are in use only after one was loaded.
        steps = [*search.steps(program, (i for part in sequences for i in part))]
        if steps:
            yield program.with_steps(steps)
