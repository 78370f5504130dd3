"""Energy: published figures times counts."""

import pytest

from intloom.common.errors import FileFormatError
from intloom.exploration.energy import choose_technology, energy, technologies
from intloom.exploration.work import Cycles, Work
from intloom.hw.spec.params import preset

GOOD = 'source = "mine"\nproduct = 1\nsum = 1\ndram = 1\nmemory = [[1, 2], [4, 4], [16, 32]]\n'


def test_energy_is_counts_times_the_table():
    params = preset("base")
    work = Work(Cycles(), macs=1_000_000, vector_macs=0, scratch=1000, weight_words=0, sums=10, dram=500)
    table = technologies()["45nm"]
    spent = energy(work, params, table)
    assert spent["products"] == pytest.approx(0.3)
    # Banks of 32 KiB: 20 pJ for 64 bits, and words have 128.
    assert spent["scratchpad"] == pytest.approx(1000 * 40 / 1e6)
    assert spent["DRAM"] == pytest.approx(500 * 2 * 1300 / 1e6)
    assert spent["weight memory"] == 0


def test_sizes_between_and_beyond_the_table_follow_a_power_law(tmp_path):
    (file := tmp_path / "t.toml").write_text(f"[own]\n{GOOD}")
    table = choose_technology(str(file))
    energies = [table.access(kib, 64) for kib in (0.25, 1, 2, 4, 8, 16, 64)]
    assert energies == pytest.approx([1, 2, 8**0.5, 4, 128**0.5, 32, 256])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must have the table of one technology, not 0"),
        ("[a]\nproduct = 1", "must have source"),
        ("a = 1", "must have source"),
        ("[a", "must be a TOML file"),
        (f"[a]\n{GOOD}".replace("sum = 1", "sum = -1"), "every number must be above 0"),
        (f"[a]\n{GOOD}".replace("[4, 4]", "[1, 4]"), "sizes of memories must rise"),
        (f"[a]\n{GOOD}".replace("[4, 4]", "4"), "at least two pairs"),
        (f"[a]\n{GOOD}".replace(", [4, 4], [16, 32]", ""), "at least two pairs"),
    ],
)
def test_a_bad_table_is_refused(tmp_path, text, said):
    (file := tmp_path / "t.toml").write_text(text)
    with pytest.raises(FileFormatError, match=said):
        choose_technology(str(file))
