"""Rasters for the raster walker and for the units that contain one."""

from amaranth.hdl import Shape

from intloom.hw.vector.raster_walker import RASTER_LAYOUT

COUNTS = ("blocks", "lines", "pixels", "line_repeat", "pixel_repeat")


def large_rasters(name: str) -> list[dict[str, int]]:
    """Rasters in which only this member is large: with its top bit; a count also with every bit, other counts being 1.

    A count of 2^n + 1 or 2^n + 2 that lost bit n ends after one step or two: where it is loaded, or where it steps.
    """
    small = dict.fromkeys(RASTER_LAYOUT.members, 2) | {"base": 3, "plane": 100, "line": 10, "step": 1}
    shape = Shape.cast(RASTER_LAYOUT.members[name])
    found = [small | {name: small[name] | 1 << shape.width - 1 - shape.signed}]
    if name in COUNTS:
        ones = small | dict.fromkeys(COUNTS, 1) | {"lines": 9, "pixels": 9, "line_repeat": 1, "pixel_repeat": 1}
        outer = {"lines": {"pixels": 1}, "blocks": {"lines": 1, "pixels": 1}}.get(name, {})
        found += [ones | outer | {name: 1 << bit | n} for bit in range(2, shape.width) for n in (1, 2)]
    return found
