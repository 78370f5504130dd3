"""A program runs only on the hardware and instruction set it was made for."""

import pytest
from hypothesis import given

from intloom.common.errors import ExitCode, HardwareMismatchError
from intloom.hw.spec.identity import begin, check_program
from intloom.hw.spec.isa import ISA_VERSION, Kind, make
from intloom.hw.spec.params import PRESETS, HardwareParams
from tests.hw.spec.strategies import hardware


@given(hardware())
def test_a_program_of_the_same_hardware_is_accepted(params: HardwareParams):
    check_program(begin(params), params)


def test_other_hardware_is_refused_and_both_are_named():
    with pytest.raises(
        HardwareMismatchError, match=r"hardware base \([0-9a-f]{8}\), not nano \([0-9a-f]{8}\)"
    ) as error:
        check_program(begin(PRESETS["nano"]), PRESETS["base"])
    assert error.value.exit_code is ExitCode.WRONG_HARDWARE


@given(hardware(), hardware())
def test_hardware_differs_exactly_when_fingerprints_do(one: HardwareParams, other: HardwareParams):
    assert (one == other) == (one.fingerprint() == other.fingerprint())


def test_another_instruction_set_version_is_refused_and_both_are_named():
    params = PRESETS["base"]
    with pytest.raises(HardwareMismatchError, match=f"version {ISA_VERSION}, not {ISA_VERSION + 1}"):
        check_program(begin(params).with_fields(version=ISA_VERSION + 1), params)


def test_a_program_without_begin_is_refused():
    with pytest.raises(HardwareMismatchError, match="must start with BEGIN, not LOAD"):
        check_program(make(Kind.LOAD), PRESETS["base"])
