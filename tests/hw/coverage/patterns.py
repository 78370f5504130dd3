"""Programs for the toggles of wide registers: all fields take a value, its complement, and the value again.

Addresses and sizes are legal by themselves only: most programs end in an error or by the watchdog. What counts is that
each register between fetch and the last stage of decoding has held both values of all bits in one run.
"""

import random
from collections.abc import Iterator

from intloom.common.errors import IntloomError
from intloom.hw.spec.fields import Field
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import (
    BY_KIND,
    COUNT_BITS,
    INSTRUCTION_BYTES,
    QUEUED_UNITS,
    Instruction,
    Kind,
    Unit,
    encode,
    make,
)
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import add_check
from tests.sim.random_programs.short_runs import checked

_ATTEMPTS = 50
_PATTERNS = 6
"""Values of each instruction."""
_ALTERNATE = 0x5_5555
"""Every second bit of an instruction count."""
_FIRST_OF_UNIT = {Unit.LOAD: Kind.LOAD, Unit.STORE: Kind.STORE, Unit.MAC: Kind.CONV, Unit.VEC: Kind.VTABLE}
_SHORTEST = (Kind.LOAD, Kind.STORE, Kind.CONV, Kind.VCOPY)
"""Of each unit, an instruction that takes no longer than its dispatch."""
ILLEGAL = bytes([7]) + bytes(INSTRUCTION_BYTES - 1)
"""An instruction without a unit."""
UNMET = encode(make(Kind.LOAD, wait_store=_ALTERNATE << 1))
"""An instruction whose wait never ends."""
_BURSTS_MORE = 8
"""Bursts of a transfer above those that may be outstanding."""
_HIGH_INDICES = (1 << COUNT_BITS) - (1 << 13)
"""The bits of an index that shorter programs do not reach."""
Series = tuple[bytes, ...]
"""Programs that run one after the other."""


def complement(field: Field, value: int) -> int:
    """The other end of a field's range: for most fields the value with all bits inverted."""
    return field.minimum + field.maximum - value


def _value(rng: random.Random, field: Field) -> int:
    """A value with long runs of equal bits, or any."""
    low, high = field.minimum, field.maximum
    edges = (low, high, min(high, max(low, _ALTERNATE & high)))
    return rng.choice((*edges, *(rng.randint(low, high) for _ in range(4))))


def _pair(rng: random.Random, kind: Kind, fixed: dict[str, int]) -> tuple[Instruction, Instruction] | None:
    """An instruction and its complement."""
    spec = BY_KIND[kind]
    for _ in range(_ATTEMPTS):
        values = {f.name: _value(rng, f) for f in spec.body}
        others = {f.name: complement(f, values[f.name]) for f in spec.body}
        if spec.one_factor:
            values["m2"], others["m2"] = values["m1"], others["m1"]
        try:
            return make(kind, **values | fixed), make(kind, **others | fixed)
        except IntloomError:
            continue
    return None


def _fixed(kind: Kind, number: int, params: HardwareParams) -> Iterator[dict[str, int]]:
    """What the checks of an instruction leave no choice about."""
    if kind is Kind.CONV:
        lane = number % (params.rows // params.lanes) * params.lanes
        yield from ({"mode": mode, "out_lane": lane, "ring": 0} for mode in range(2))
    else:
        yield {}


def field_series(params: HardwareParams, rng: random.Random) -> Iterator[Series]:
    """For every kind, an instruction with a value in all fields, its complement, and the value again."""
    kinds = [spec.kind for spec in BY_KIND.values() if spec.unit in QUEUED_UNITS]
    for kind in kinds:
        for number in range(_PATTERNS):
            for fixed in _fixed(kind, number, params):
                known = {f.name for f in BY_KIND[kind].body}
                pair = _pair(rng, kind, {name: value for name, value in fixed.items() if name in known})
                if pair is not None:
                    first, second = (checked(params, encode(i)) for i in pair)
                    yield first, second, first


def wait_series(params: HardwareParams) -> Iterator[Series]:
    """For every unit, a full queue of instructions that wait for every second bit of all counts, then the others."""
    other = (1 << COUNT_BITS) - 1 ^ _ALTERNATE
    for kind in _FIRST_OF_UNIT.values():
        programs = []
        for pattern in (_ALTERNATE, other, _ALTERNATE):
            waits = {f"wait_{unit.name.lower()}": pattern for unit in QUEUED_UNITS}
            programs.append(checked(params, *[encode(make(kind, **waits))] * params.queue_depth))
        yield tuple(programs)


def end_series(params: HardwareParams) -> Iterator[Series]:
    """END that waits for every second bit of all counts, then for the others."""
    other = (1 << COUNT_BITS) - 1 ^ _ALTERNATE
    patterns = (_ALTERNATE, other, _ALTERNATE)
    ends = [make(Kind.END, **{f"wait_{u.name.lower()}": pattern for u in QUEUED_UNITS}) for pattern in patterns]
    yield tuple(add_check([encode(begin(params)), encode(end)]) for end in ends)


def transfers(params: HardwareParams, first: int) -> bytes:
    """Bursts of the largest length and of one word, and instructions of one word: more than can be in flight.

    `first` is the memory word from which on they load and store.
    """
    bursts = params.axi_outstanding + _BURSTS_MORE
    sizes = ({"n0": bursts * params.axi_burst}, {"n0": 1, "n1": bursts, "dram_s1": 2}) * 2
    codes = [encode(make(kind, dram=first, **size)) for size in sizes for kind in (Kind.STORE, Kind.LOAD)]
    stores = [encode(make(Kind.STORE, dram=first))] * (2 * bursts)
    # So many that each entry of the FIFO of owners has held a burst of fetch, and then one of a load.
    loads = [encode(make(Kind.LOAD, dram=first))] * (params.axi_outstanding * (params.axi_outstanding + 2))
    return checked(params, *codes, *stores, *loads, *codes)


def _outside(kind: Kind, params: HardwareParams) -> Instruction:
    """An instruction with an address past the scratchpad."""
    if kind is Kind.VTABLE:
        return make(Kind.VCOPY, a_base=params.scratch_words)
    name = {Kind.LOAD: "local", Kind.STORE: "local", Kind.CONV: "out_base"}[kind]
    return make(kind, **{name: params.scratch_words})


def outside(params: HardwareParams) -> Iterator[Instruction]:
    """Instructions with one address past the end of the scratchpad: of each unit, and of each of its accesses."""
    end = params.scratch_words
    accesses = {
        Kind.LOAD: ({"local": end},),
        Kind.STORE: ({"local": end},),
        Kind.CONV: ({"out_base": end}, {"in_base": end}, {"residual": 1, "res_base": end}),
        Kind.VCOPY: ({"a_base": end}, {"out_base": end}),
        Kind.VADD: ({"b_base": end},),
    }
    return (make(kind, **fields) for kind, cases in accesses.items() for fields in cases)


def index_series(params: HardwareParams, before: int) -> Iterator[Series]:
    """One instruction of every unit with an index above `before`, then with a small one; without and with a fault."""
    good = [encode(make(kind)) for kind in _FIRST_OF_UNIT.values()]
    faulty = [encode(_outside(kind, params)) for kind in _FIRST_OF_UNIT.values()]
    for last in (good, *([code] for code in faulty), [ILLEGAL]):
        yield checked(params, *[encode(begin(params))] * before, *last), checked(params, *last)


def long_series(params: HardwareParams, last: bytes) -> Series:
    """A quarter of a million instructions of each unit, some more of each, and one that raises a fault.

    The same with small indices and counts follows.
    """
    # So many that each entry of a FIFO has held an index.
    good = [encode(make(kind)) for kind in _FIRST_OF_UNIT.values()] * (2 * params.axi_outstanding + _BURSTS_MORE)
    *most, fewest = (encode(make(kind)) for kind in _SHORTEST)
    rounds = _HIGH_INDICES - len(_SHORTEST[1:]) * (1 << COUNT_BITS - 2)
    before = [*most, fewest] * rounds + most * ((1 << COUNT_BITS - 2) - rounds)
    return checked(params, *before, *good, last), checked(params, *good, last)


def queued_series(params: HardwareParams) -> Iterator[Series]:
    """For loads and stores, two values and their complements in all fields, in every entry of the FIFO of runs."""
    for kind in (Kind.LOAD, Kind.STORE):
        fields = [f for f in BY_KIND[kind].body if not f.requires or getattr(params, f.requires)]
        small = encode(make(kind))
        for before in range(params.runs_in_flight):
            for pattern in (-1, _ALTERNATE):
                values = {f.name: min(f.maximum, max(f.minimum, pattern & (1 << f.width) - 1)) for f in fields}
                others = {f.name: complement(f, values[f.name]) for f in fields}
                first, second = (checked(params, *[small] * before, encode(make(kind, **v))) for v in (values, others))
                yield first, second, first
