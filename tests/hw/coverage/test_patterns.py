"""Pattern programs hold a value and its complement in every field of every kind."""

import random
from collections import defaultdict

from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, INSTRUCTION_BYTES, QUEUED_UNITS, Kind, decode
from tests.hw.coverage.patterns import end_series, field_series, index_series, transfers, wait_series
from tests.sim.random_programs.extremes import WIDE


def _instructions(program: bytes) -> list:
    return [decode(program[at : at + INSTRUCTION_BYTES]) for at in range(0, len(program), INSTRUCTION_BYTES)]


def test_every_bit_of_every_field_has_both_values_in_one_series() -> None:
    """But for the sign of a factor whose other half is not legal, and the bits that no legal value has."""
    seen: dict[tuple[Kind, str], int] = defaultdict(int)
    for first, second, third in field_series(WIDE, random.Random(1)):
        assert first == third
        (_, a, _), (_, b, _) = _instructions(first), _instructions(second)
        assert a.kind is b.kind
        for field in a.spec.body:
            seen[a.kind, field.name] |= a[field.name] ^ b[field.name]
    for spec in BY_KIND.values():
        for field in spec.body if spec.unit in QUEUED_UNITS else ():
            width = (1 << field.width - field.signed) - 1
            fixed = (spec.kind, field.name) in {(Kind.CONV, "mode"), (Kind.CONV, "out_lane")}
            assert fixed or seen[spec.kind, field.name] & width, f"{spec.kind}.{field.name}"


def test_waits_have_both_values_in_the_queue_of_every_unit() -> None:
    mask = (1 << COUNT_BITS) - 1
    units = set()
    for series in wait_series(WIDE):
        first, second, third = (_instructions(program)[1:-1] for program in series)
        assert len(first) == WIDE.queue_depth
        assert [i["wait_mac"] for i in first] == [i["wait_mac"] for i in third]
        assert {a["wait_vec"] ^ b["wait_vec"] for a, b in zip(first, second, strict=True)} == {mask}
        units.add(first[0].unit)
    assert units == set(QUEUED_UNITS)


def test_waits_of_end_have_both_values() -> None:
    (series,) = end_series(WIDE)
    first, second, third = (_instructions(program)[-1] for program in series)
    assert first.kind is Kind.END
    assert first == third
    for unit in QUEUED_UNITS:
        name = f"wait_{unit.name.lower()}"
        assert first[name] ^ second[name] == (1 << COUNT_BITS) - 1


def test_transfers_fill_every_entry_with_both_lengths() -> None:
    found = _instructions(transfers(WIDE, 4096))
    for kind in (Kind.LOAD, Kind.STORE):
        moves = [i for i in found if i.kind is kind]
        whole = [i["n0"] // WIDE.axi_burst for i in moves if i["n0"] > 1]
        assert len(whole) == 4, "the others come after short bursts"
        assert min(whole) > WIDE.axi_outstanding
        assert max(i["n1"] for i in moves) > WIDE.axi_outstanding
        assert sum(i["n0"] == i["n1"] == 1 for i in moves) > 2 * WIDE.axi_outstanding
        assert all(i["dram"] == 4096 for i in moves)


def test_every_unit_has_a_fault_with_a_large_index_and_with_a_small_one() -> None:
    sizes = [tuple(len(program) // INSTRUCTION_BYTES for program in series) for series in index_series(WIDE, 9)]
    assert len(sizes) == len(QUEUED_UNITS) + 2
    assert all(long == short + 9 for long, short in sizes)
