"""The fingerprint that BEGIN has tells all hardware apart."""

from hypothesis import given

from intloom.hw.spec.identity import begin
from intloom.hw.spec.params import HardwareParams
from tests.hw.spec.strategies import hardware


@given(hardware(), hardware())
def test_hardware_differs_exactly_when_its_begin_does(one: HardwareParams, other: HardwareParams):
    assert (one == other) == (begin(one) == begin(other))
