"""Values from outside: exactly what a type allows, up to its limits."""

import math
from typing import Any

import pytest

from intloom.common.typed_json import LARGEST, LARGEST_FLOAT32, SchemaError, reader

LIMITS: list[tuple[Any, list[Any], list[Any]]] = [
    (int, [-LARGEST, 0, LARGEST], [-LARGEST - 1, LARGEST + 1, True, 1.0, "1", None]),
    (
        float,
        [-LARGEST_FLOAT32, 1, LARGEST_FLOAT32],
        [math.nan, math.inf, math.nextafter(LARGEST_FLOAT32, math.inf), True, "1", None],
    ),
    (bool, [False, True], [0, 1, "true", None]),
    (str, ["", "ä"], ["\ud800", 1, None]),
    (tuple[int, ...], [[], [1, 2, 3]], [1, [1.0], [[1]], {}]),
    (tuple[int, str], [[1, "a"]], [[1], [1, "a", 2], ["a", 1]]),
    (int | None, [None, 1], [1.5, "1"]),
]


@pytest.mark.parametrize(("kind", "allowed", "refused"), LIMITS)
def test_values_at_the_limits_of_a_type(kind: Any, allowed: list[Any], refused: list[Any]) -> None:
    for value in allowed:
        read = reader(kind)(value)
        assert list(read) == value if isinstance(value, list) else read == value
    for value in refused:
        with pytest.raises(SchemaError, match="must be "):
            reader(kind)(value)
