"""README's table keeps its rows in order when some of them are measured."""

from tools.figures import ROWS, updated


def old(row):
    return f"| {row.label} | `{row.preset}` | old |"


def test_every_row_has_its_own_label_and_preset():
    assert len({(row.label, row.preset) for row in ROWS}) == len(ROWS)


def test_only_measured_rows_change():
    """The third row is new; the last one is measured again; a row that is no longer in the list goes."""
    lines = ["| removed | `base` | old |", *(old(row) for row in ROWS if row is not ROWS[2])]
    made = updated(lines, {ROWS[2]: "new", ROWS[-1]: "last"})
    assert made == [*map(old, ROWS[:2]), "new", *map(old, ROWS[3:-1]), "last"]
    assert updated(lines, {}) == [old(row) for row in ROWS if row is not ROWS[2]]
