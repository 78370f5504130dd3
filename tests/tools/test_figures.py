"""README's table shows the recorded figures."""

from tools.figures import README, ROWS, table


def test_every_row_has_its_own_name() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_the_table_is_the_recorded_one() -> None:
    assert table() in README.read_text(encoding="utf-8"), "run make figures"
