"""What a run says about its distance from the user's file, and about its first difference."""

import pytest

from intloom.sim.checks import FirstDivergence, OriginalComparison, OutputDistance


def output(differing: int) -> OutputDistance:
    return OutputDistance("y", values=10, differing=differing, largest_steps=1, largest=0.1)


@pytest.mark.parametrize("counts", [(), (0,), (0, 0), (1,), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("error", ["", "it does not load"])
def test_a_run_matches_where_the_file_loads_and_no_output_differs(counts: tuple[int, ...], error: str) -> None:
    comparison = OriginalComparison(outputs=tuple(map(output, counts)), error=error)
    assert comparison.matches == (not error and sum(counts) == 0)


def test_the_description_for_the_terminal_is_no_value() -> None:
    first = FirstDivergence(
        against="golden", layer="a", layer_index=0, node="n", tensor="t", coordinate=(0, 1, 2, 3), expected=1, got=None,
        description="in several lines",
    )  # fmt: skip
    values = first.to_dict()
    assert "description" not in values
    assert {name: getattr(first, name) for name in values} == values
    assert len(values) == len(FirstDivergence.__dataclass_fields__) - 1
