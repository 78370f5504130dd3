"""What a configuration may use, and the clock that it is likely to reach."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import intloom.hw.fpga
from intloom.common import evidence
from intloom.common.errors import UsageError
from intloom.hw.spec.params import PRESETS, changed, named_changes

ROUTED = Path(intloom.hw.fpga.__file__).with_name("measured.json")
_GRADE = "6"


@dataclass(frozen=True)
class Device:
    """An FPGA, or standard cells."""

    name: str
    family: str
    cells: Mapping[str, float]
    """Number of each kind of cell; empty: no limit."""


def _ecp5(name: str, luts: int, multipliers: int, rams: int) -> Device:
    return Device(name, "ecp5", {"LUT": luts, "FF": luts, "DSP": multipliers, "RAM": rams})


def _series_7(name: str, luts: int, multipliers: int, rams: int) -> Device:
    return Device(name, "xc7", {"LUT": luts, "FF": 2 * luts, "DSP": multipliers, "RAM": rams})


DEVICES = {
    device.name: device
    for device in (
        _ecp5("LFE5U-25F", 24_288, 28, 56),
        _ecp5("LFE5U-45F", 43_848, 72, 108),
        _ecp5("LFE5U-85F", 83_640, 156, 208),
        _series_7("XC7Z010", 17_600, 80, 60),
        _series_7("XC7Z020", 53_200, 220, 140),
        _series_7("XC7A35T", 20_800, 90, 50),
        _series_7("XC7A100T", 63_400, 240, 135),
        _series_7("XC7K325T", 203_800, 840, 445),
        Device("asic", "asic", {}),
    )
}
"""By name; RAM is blocks of 16 kbit (ECP5) or 36 kbit (7 series)."""


def device_of(name: str) -> Device:
    """The device called `name`.

    Raises
    ------
    UsageError
        There is none of this name.
    """
    known = next((device for key, device in DEVICES.items() if key.lower() == name.lower()), None)
    if known is None:
        raise UsageError(f"--device must be one of {', '.join(DEVICES)}, not {name!r}")
    return known


@dataclass(frozen=True)
class Clock:
    """A clock and where it comes from."""

    mhz: float
    source: str


def clock_of(macs: int, chosen: float | None = None) -> Clock:
    """The chosen clock, or that of the routed design whose array has the nearest number of products."""
    if chosen is not None:
        return Clock(chosen, "chosen")
    routed = {name: row for name, row in evidence.read(ROUTED).items() if "mhz" in row.values}
    nearest = min(routed, key=lambda name: abs(math.log2(_macs(name) / macs)))
    row = routed[nearest]
    source = f"measured on {nearest}, routed on {row.date} for {row.values['device']} of grade {_GRADE}"
    return Clock(row.values["mhz"][_GRADE], source)


def _macs(name: str) -> int:
    preset, changes = named_changes(name)
    return changed(PRESETS[preset], changes).macs
