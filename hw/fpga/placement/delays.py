"""Delays of ECP5 before routing, in ps at grade 6: routes as nextpnr predicts them, cells rounded.

The longest path of a placed `base` is 16,365 ps by this module and 16,353 ps by nextpnr 0.11.
"""

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

LUT = 240
CARRY_FROM_INPUT = 450
"""From an input of a carry chain's cell to its sum or its carry."""
CARRY_TO_SUM = 450
CARRY = 70
"""Through one cell of a carry chain."""
MEMORY_READ = 800
"""From the read address of a distributed RAM; also the least delay of its output."""

CLOCK_TO_OUTPUT = {"TRELLIS_FF": 525, "TRELLIS_RAMW": 600, "DP16KD": 1200, "MULT18X18D": 1200}
OTHER_CLOCK_TO_OUTPUT = 500

_UNIT = 80
_FIXED = 6
_NEAR = 5
"""Columns or rows that count twice."""
SHORTEST_ROUTE = _UNIT * _FIXED


def route(columns: Integers, rows: Integers) -> Integers:
    """Delay of a route over this many columns and rows."""
    far = np.maximum(columns - _NEAR, 0) + np.maximum(rows - _NEAR, 0)
    near = np.minimum(columns, _NEAR) + np.minimum(rows, _NEAR)
    return _UNIT * (_FIXED + far + 2 * near)
