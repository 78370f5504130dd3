"""Every integer operation has exactly one schedule."""

import pytest

from intloom.compiler.ir import Add
from intloom.compiler.ir.node import operators
from intloom.compiler.schedule.operators.registry import SCHEDULES, schedules


def test_every_operation_has_a_schedule():
    assert set(SCHEDULES) == set(operators().values())


def test_a_second_schedule_is_refused():
    with pytest.raises(ValueError, match="Add already has a schedule"):
        schedules(Add)(lambda stages, node: None)
