"""Every register at its highest bit, in whole programs; counters and constants have tests of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from intloom.hw.control.registers import constants
from intloom.hw.spec.isa import Kind, Unit, make
from intloom.hw.spec.regs import CAPABILITIES, COUNTERS, REGISTERS, Access, Cause
from intloom.sim.random_programs.compare import simulator_of
from intloom.sim.rtl.job import MEMORY_BASE
from tests.sim.random_programs.extremes import WIDE, extreme_program
from tests.sim.random_programs.short_runs import DONE, PROGRAM_BYTE, Ending, altered, checked, ending

ROOT = Path(__file__).parents[3]
_TOP = 1 << 31
_WORD = WIDE.word_bytes
_PROGRAM_WORD = PROGRAM_BYTE // _WORD
_LOST = Ending(Cause.FETCH_ERROR, Unit.CONTROL, 0)
"""The program is not where the registers say."""
_HANG = (altered(make(Kind.LOAD), "wait_store", 0),)


@dataclass(frozen=True)
class Evidence:
    """A program's ending with a register's highest bit, and another one without it."""

    settings: Mapping[str, int]
    """Settings of the run; the register has its highest bit."""
    without: Mapping[str, int]
    """Those that change if the register loses this bit, and memory stays where it is."""
    ending: Ending | None
    other: Ending | None
    codes: tuple[bytes, ...] = ()


def _base(bit: int) -> Evidence:
    with_bit = {"memory_base": MEMORY_BASE | 1 << bit, "first_byte": MEMORY_BASE | 1 << bit}
    return Evidence(with_bit, {"memory_base": MEMORY_BASE}, DONE, _LOST)


WRITTEN: Mapping[str, Evidence] = MappingProxyType(
    {
        "BASE_LOW": _base(31),
        "BASE_HIGH": _base(63),
        "PROGRAM": Evidence(
            {"program_word": _TOP + _PROGRAM_WORD, "first_byte": MEMORY_BASE + _TOP * _WORD},
            {"program_word": _PROGRAM_WORD},
            DONE,
            _LOST,
        ),
        "LENGTH": Evidence(
            {"instructions": _TOP, "window_words": (1 << 32) - 1},
            {"instructions": 0},
            DONE,
            Ending(Cause.NO_END, Unit.CONTROL, 0),
        ),
        "LIMIT": Evidence(
            {
                "program_word": _TOP + _PROGRAM_WORD,
                "first_byte": MEMORY_BASE + _TOP * _WORD,
                "window_words": _TOP + 2 * _PROGRAM_WORD,
            },
            {"window_words": 2 * _PROGRAM_WORD},
            DONE,
            Ending(Cause.OUTSIDE_WINDOW, Unit.CONTROL, 0),
        ),
        "WATCHDOG": Evidence(
            {"watchdog": _TOP + 300}, {"watchdog": 300}, None, Ending(Cause.WATCHDOG, Unit.LOAD, 1), _HANG
        ),
    }
)
"""Registers that software writes, but for flags."""

TESTED_APART = {
    "CONTROL": "tests/hw/control/test_registers.py::test_commands_are_pulses",
    "IRQ_ENABLE": "tests/hw/control/test_registers.py::test_only_what_may_be_written_is",
    "IRQ_STATUS": "tests/hw/control/test_registers.py::test_flags_are_set_and_cleared_in_the_same_cycle",
    "OUTSTANDING": "tests/hw/control/test_outstanding.py::test_counts_are_those_of_the_model",
    "LOCK": "tests/hw/npu/bench_faults.py::window_is_latched_and_locked",
    "STATUS": "tests/sim/random_programs/test_top_bits.py::"
    "test_header_bits_and_addresses_past_the_scratchpad_end_in_their_error",
    "ERROR_INDEX": "tests/sim/random_programs/test_top_bits.py::test_an_error_index_above_2_to_the_15",
    **dict.fromkeys(
        (r.name for r in COUNTERS),
        "tests/hw/control/test_counters.py::test_every_counter_carries_through_all_of_its_bits",
    ),
    **dict.fromkeys(constants(WIDE), "tests/hw/control/test_registers.py::test_resets_constants_and_inputs_read_back"),
}
"""Registers whose highest bits another test needs."""


def test_no_register_is_left_out() -> None:
    assert not WRITTEN.keys() & TESTED_APART.keys()
    assert WRITTEN.keys() | TESTED_APART.keys() == {r.name for r in REGISTERS}
    plain = {r.name for r in REGISTERS if r.access is Access.RW and not r.fields}
    assert WRITTEN.keys() == plain
    assert {r.name for r in CAPABILITIES} < constants(WIDE).keys()
    for test in set(TESTED_APART.values()):
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), test


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_a_program_needs_the_highest_bit_of_every_register(name: str) -> None:
    simulator, evidence = simulator_of(extreme_program(WIDE, [])), WRITTEN[name]
    program = checked(WIDE, *evidence.codes)
    assert ending(simulator, WIDE, program, **evidence.settings) == evidence.ending
    assert ending(simulator, WIDE, program, **{**evidence.settings, **evidence.without}) == evidence.other
    assert evidence.ending != evidence.other
