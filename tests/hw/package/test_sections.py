"""Functions of a source, their titles and comments, and names that Amaranth does not see."""

from pathlib import Path

import pytest

from intloom.hw.package.sections import Comment, assigned_names, section_at

SOURCE = '''\
class Adder:
    """Adds."""

    def elaborate(self, platform):
        """Two stages,
        registered.

        Details.
        """
        # A comment of
        # two lines.
        with m.If(go):
            m.d.sync += [
                a.eq(1),
                # About b.
                b.eq(
                    2
                ),
            ]
        return m

    def _last_stage(self, m):
        """The sum."""
        first, self._second = Signal(), Signal()
        m.d.comb += c.eq(1)  # not on a line of its own

    def plain(self):
        pass
'''


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "source.py"
    file.write_text(SOURCE)
    return str(file)


def test_titles_are_what_functions_do(path: str) -> None:
    assert section_at(path, 12).title == "Two stages, registered."
    assert section_at(path, 24).title == "last stage: The sum."
    assert section_at(path, 27).title == "plain"
    assert section_at(path, 2) is None


def test_comments_have_the_lines_that_they_stand_before(path: str) -> None:
    assert section_at(path, 12).comments == (
        Comment(("A comment of", "two lines."), 12, 19),
        Comment(("About b.",), 16, 18),
    )
    assert section_at(path, 24).comments == ()


def test_names_of_an_assignment_to_several(path: str) -> None:
    assert sorted(assigned_names(path, 24)) == ["_second", "first"]
    assert assigned_names(path, 25) == []
