"""Boards: device, clocks, memory, and the pins that the system uses."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from intloom.common.errors import UsageError

Pins = Mapping[str, str]
"""Package pins by signal. A signal of several bits has its pins in order, bit 0 first, separated by spaces."""


@dataclass(frozen=True)
class Board:
    """Facts of a board, for one SDR SDRAM of 16 bits."""

    name: str
    devices: tuple[str, ...]
    """Members of the family that the board is sold with and that hold the system, the default first."""
    package: str
    grade: int
    oscillator: float
    """Frequency at pin `clk`, Hz."""
    clock: float
    """Frequency of the system, Hz."""
    sdram: str
    """Geometry and timing, by the name of LiteDRAM's module."""
    pins: Mapping[str, Pins]
    """By group: `clk`, `rst` (active high), `serial`, `leds`, `sdram_clk`, `sdram`, and pins that stay high, `high`."""
    options: Mapping[str, str]
    """Options of `IOBUF PORT` beside the 3.3 V standard, by group."""


ULX3S = Board(
    name="ulx3s",
    devices=("85F", "45F"),
    package="CABGA381",
    grade=6,
    oscillator=25e6,
    clock=50e6,
    # The boards have one of several chips of 32 or 64 Mbyte. Each has at least the rows and columns of this one.
    sdram="MT48LC16M16",
    pins=MappingProxyType({
        "clk": {"": "G2"},
        "rst": {"": "R1"},
        "serial": {"tx": "L4", "rx": "M1"},
        "leds": {"": "B2 C2 C1 D2 D1 E2 E1 H3"},
        "high": {"": "L2"},
        "sdram_clk": {"": "F19"},
        "sdram": {
            "a": "M20 M19 L20 L19 K20 K19 K18 J20 J19 H20 N19 G20 G19",
            "ba": "P19 N20",
            "dq": "J16 L18 M18 N18 P18 T18 T17 U20 E19 D20 D19 C20 E18 F18 J18 J17",
            "dm": "U19 E20",
            "cke": "F20", "cs_n": "P20", "ras_n": "R20", "cas_n": "T19", "we_n": "T20",
        },
    }),
    options=MappingProxyType({
        "clk": "PULLMODE=NONE",
        "rst": "PULLMODE=DOWN",
        "serial": "PULLMODE=UP",
        "sdram_clk": "SLEWRATE=FAST",
        "sdram": "SLEWRATE=FAST",
    }),
)  # fmt: skip
"""Radiona's ULX3S, versions 2 and 3; pins as in its constraint file `ulx3s_v20.lpf`.

`rst` is the button FIRE1. `high` is GPIO0 of the ESP32, which starts its boot loader and takes over the JTAG pins when
the pin is low.
"""

BOARDS = {board.name: board for board in (ULX3S,)}


def board_named(name: str) -> Board:
    """The board of this name.

    Raises
    ------
    UsageError
        There is none.
    """
    if name not in BOARDS:
        raise UsageError(f"there is no board {name!r}; boards are {', '.join(BOARDS)}")
    return BOARDS[name]
