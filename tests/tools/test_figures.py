"""README's table shows the recorded figures."""

import pytest

from intloom.common.errors import EnvironmentFault
from tools.figures import README, ROWS, require_idle, table


def test_every_row_has_its_own_name() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_the_table_is_the_recorded_one() -> None:
    assert table() in README.read_text(encoding="utf-8"), "run make figures, or add figures.OLDER below the table"


def test_a_loaded_machine_is_not_measured() -> None:
    require_idle(lambda _seconds: 3.0)
    with pytest.raises(EnvironmentFault, match="55 % of the processors are in use"):
        require_idle(lambda _seconds: 55.0)
