"""Raster setup: the walkers visit what the instruction states."""

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest
from amaranth.hdl import Shape
from amaranth.lib import data

from intloom.hw.spec.isa import BY_KIND, SCRATCH_BITS, Instruction, Kind
from intloom.hw.spec.norm import CONSTANT_WORDS
from intloom.hw.spec.norm import PASSES as NORM_PASSES
from intloom.hw.spec.params import preset
from intloom.hw.spec.softmax import PASSES
from intloom.hw.spec.vector_depthwise import TAPS, constant_words
from intloom.hw.vector.operation import OPERATION_LAYOUT, operation_of
from intloom.hw.vector.raster_setup import RasterSetup
from intloom.hw.vector.raster_walker import RASTER_LAYOUT, RasterWalker
from intloom.hw.vector.window_walker import WINDOW_LAYOUT, WindowWalker
from tests.hw.instructions import BenchInstructions
from tests.hw.streams import made, run

PARAMS = preset("nano").replace(scratch_kib=4)
WALKS = ("a", "b", "out")
COUNTS = ("blocks", "out_h", "out_w")
ADDRESSES = (
    *("a_base", "a_plane", "a_row", "a_x", "b_base", "b_plane", "b_row"),
    *("out_base", "out_plane", "out_row", "out_x"),
)
PREFIX = 8
"""Words to compare: more than there are if a count has lost its top bit."""


def _fields(layout: data.StructLayout, bits: int) -> dict[str, Any]:
    constant = layout.from_bits(bits)
    return {name: constant[name] for name in layout.members}


def _width(name: str) -> int:
    return Shape.cast(OPERATION_LAYOUT.members[name]).width


def _plans(operations: Sequence[dict[str, int]]) -> list[dict[str, Any]]:
    """The configurations that raster setup derives from one operation after another."""
    planner = made(RasterSetup)
    plans: list[dict[str, Any]] = []

    async def bench(ctx: Any) -> None:
        for operation in operations:
            ctx.set(planner.operation, operation)
            await ctx.tick().repeat(RasterSetup.LATENCY)
            plan = {name: _fields(RASTER_LAYOUT, ctx.get(getattr(planner, name)).as_bits()) for name in WALKS}
            plan["window"] = _fields(WINDOW_LAYOUT, ctx.get(planner.window).as_bits())
            plan["slide"], plan["link"] = ctx.get(planner.slide), ctx.get(planner.link)
            plans.append(plan)

    run(planner, bench)
    return plans


def _windows(plan: dict[str, Any]) -> Iterator[list[tuple[int, bool]]]:
    """The words of each window, in order, as the walkers and the pool's chain combine them."""
    words: list[tuple[int, bool]] = []
    for pixel in RasterWalker.model(plan["a"]):
        for addr, inside, first, last in WindowWalker.model(plan["window"], pixel):
            words = [*([] if first else words), (addr, inside)]
            if last:
                yield words[-plan["link"] - 1 :] if plan["slide"] else words


def _addresses(raster: dict[str, int]) -> Iterator[int]:
    return (pixel["addr"] for pixel in RasterWalker.model(raster))


def _widened(operation: dict[str, int], rng: random.Random) -> dict[str, int]:
    """The same counts at addresses with all bits; windows begin near the limits of inputs of any size."""
    found = dict(operation)
    for name in ADDRESSES:
        # A Softmax and a normalization read neighbors.
        if name != "a_x" or not operation["channels"]:
            found[name] = rng.getrandbits(_width(name))
    if operation["bounded"]:
        for size, corner in (("in_h", "iy0"), ("in_w", "ix0")):
            found[size] = rng.randrange(1, 1 << rng.randint(1, _width(size)))
            most = (1 << _width(corner) - 1) - 1
            corners = (-rng.randint(1, most), rng.randint(-4, 4), found[size] - rng.randint(0, 4))
            found[corner] = min(rng.choice(corners), most)
    return found


def _operation(instruction: Instruction, rng: random.Random) -> dict[str, int]:
    """The operation of an instruction, with any bits in the fields that it does not read."""
    return {name: rng.getrandbits(_width(name)) for name in OPERATION_LAYOUT.members} | operation_of(
        instruction, PARAMS
    )


@pytest.mark.parametrize("kind", [Kind.VCOPY, Kind.VADD, Kind.VMUL, Kind.VMAX, Kind.VAVG])
@pytest.mark.parametrize("wide", [False, True])
def test_raster_setup_matches_the_instruction(kind: Kind, wide: bool, rng: random.Random) -> None:
    maker = BenchInstructions(rng, PARAMS)
    # About one maximum in ten slides along a line.
    operations = [_operation(maker.instruction(kind), rng) for _ in range(200 if kind is Kind.VMAX else 80)]
    if wide:
        operations = [_widened(operation, rng) for operation in operations]
    plans = _plans(operations)
    for operation, plan in zip(operations, plans, strict=True):
        wanted = list(RasterSetup.model(operation))
        addresses = list(_addresses(plan["out"]))
        assert sorted(addresses) == sorted(out for out, *_ in wanted)
        if len(set(addresses)) == len(addresses):
            found = dict(zip(addresses, _windows(plan), strict=True))
            assert found == {out: window for out, window, _ in wanted}, operation
        assert list(_addresses(plan["b"])) == [b for *_, b in wanted]
    slid = sum(plan["slide"] for plan in plans)
    assert (slid > 0) == (kind is Kind.VMAX)


def _over_channels(
    kind: Kind, wide: bool, rng: random.Random
) -> Iterator[tuple[dict[str, int], dict[str, Any], list[Any]]]:
    """Random operations, what their walkers get, and the window of each pixel; the outputs are compared."""
    maker = BenchInstructions(rng, PARAMS)
    operations = [_operation(maker.instruction(kind), rng) for _ in range(25)]
    if wide:
        operations = [_widened(operation, rng) for operation in operations]
    for operation, plan in zip(operations, _plans(operations), strict=True):
        wanted = list(RasterSetup.model(operation))
        assert list(_addresses(plan["out"])) == [out for out, *_ in wanted]
        assert not plan["slide"], operation
        yield operation, plan, [window for _, window, _ in wanted[:: operation["blocks"]]]


@pytest.mark.parametrize("wide", [False, True])
def test_a_softmax_visits_each_pixel_three_times(wide: bool, rng: random.Random) -> None:
    for operation, plan, windows in _over_channels(Kind.VSOFTMAX, wide, rng):
        assert list(_windows(plan)) == [window for window in windows for _ in range(PASSES)], operation


@pytest.mark.parametrize("wide", [False, True])
def test_a_normalization_visits_each_line_twice(wide: bool, rng: random.Random) -> None:
    for operation, plan, windows in _over_channels(Kind.VNORM, wide, rng):
        width = operation["out_w"]
        lines = [windows[at : at + width] for at in range(0, len(windows), width)]
        assert list(_windows(plan)) == [window for line in lines for window in line * NORM_PASSES], operation
        constants = range(operation["b_base"], operation["b_base"] + CONSTANT_WORDS * operation["blocks"])
        assert list(_addresses(plan["b"])) == [address % (1 << SCRATCH_BITS) for address in constants]


def test_a_depthwise_convolution_reads_its_constants_as_one_line(rng: random.Random) -> None:
    maker = BenchInstructions(rng, PARAMS)
    # A kernel of one row, or of one column, has stride 1 along it, as a sliding maximum has.
    kernels = (
        {"kernel_h": h, "kernel_w": w, "stride_h": 1 + (w - 1) % 4, "stride_w": 1 + (h - 1) % 4}
        for h in range(1, 16)
        for w in range(1, TAPS + 1)
    )
    operations = [_operation(maker.instruction(Kind.VDEPTHWISE), rng) | kernel for kernel in kernels]
    wide = [_widened(operation, rng) | {"b_base": (1 << SCRATCH_BITS) - k} for k, operation in enumerate(operations)]
    for operation, plan in zip(operations + wide, _plans(operations + wide), strict=True):
        first = operation["b_base"]
        count = constant_words(operation["kernel_h"], operation["kernel_w"])
        constants = [(first + k) % (1 << SCRATCH_BITS) for k in range(count)]
        assert not plan["slide"], operation
        assert list(_addresses(plan["b"])) == constants
        assert list(_addresses(plan["out"])) == [out for out, *_ in RasterSetup.model(operation)]


def _bits(kind: Kind, name: str) -> range:
    """Bits of a field that random instructions do not reach."""
    return range(3, BY_KIND[kind].field(name).width)


def _large(kind: Kind, operation: dict[str, int]) -> Iterator[dict[str, int]]:
    """One count with each of its bits, 2^n + 2: it ends after two steps if bit n is lost; and the largest one.

    The line of a sliding window is longer than that of the output.
    """
    one = operation | dict.fromkeys(COUNTS, 1)
    for name in COUNTS:
        yield from (one | {name: 1 << bit | 2} for bit in _bits(kind, name))
        yield one | {name: BY_KIND[kind].field(name).maximum}
    if kind is Kind.VCOPY:
        for name, count in (("up_h", "out_h"), ("up_w", "out_w")):
            yield from (one | {count: PREFIX, name: 1 << bit | 2} for bit in _bits(kind, name))
    if operation["bounded"]:
        yield from _large_windows(kind, one)


def _large_windows(kind: Kind, one: dict[str, int]) -> Iterator[dict[str, int]]:
    """The same for a window; and inputs that end within it."""
    for name, corner in (("in_h", "iy0"), ("in_w", "ix0")):
        for bit in _bits(kind, name):
            yield one | {name: 1 << bit, corner: (1 << bit) - 1}
            yield one | {name: (1 << bit) - 1, corner: (1 << bit) - 1}
    for name, stride in (("kernel_h", "stride_w"), ("kernel_w", "stride_h")):
        yield from (one | {stride: 2, name: 1 << bit | 2} for bit in _bits(kind, name))
    for name, count in (("stride_h", "out_h"), ("stride_w", "out_w")):
        yield from (one | {count: PREFIX, name: 1 << bit} for bit in range(_width(name)))


@pytest.mark.parametrize("kernel", [(1, 1), (1, 3), (3, 1), (2, 2)])
@pytest.mark.parametrize("kind", [Kind.VCOPY, Kind.VADD, Kind.VMAX, Kind.VAVG, Kind.VSOFTMAX])
def test_every_count_and_limit_has_its_whole_width(kind: Kind, kernel: tuple[int, int], rng: random.Random) -> None:
    operation = _operation(BenchInstructions(rng, PARAMS).instruction(kind), rng)
    if operation["bounded"]:
        operation |= {"kernel_h": kernel[0], "kernel_w": kernel[1], "stride_h": 1, "stride_w": 1}
    operations = list(_large(kind, operation))
    if operation["softmax"]:
        operations = [o | {"kernel_h": o["blocks"]} for o in operations]
    for given, plan in zip(operations, _plans(operations), strict=True):
        wanted = list(islice(RasterSetup.model(given), PREFIX))
        assert list(islice(_addresses(plan["out"]), PREFIX)) == [out for out, *_ in wanted], given
        if given["softmax"]:
            windows = [window for _, window, _ in wanted[:: given["blocks"]] for _ in range(PASSES)]
        else:
            windows = [window for _, window, _ in wanted]
            assert list(islice(_addresses(plan["b"]), PREFIX)) == [b for *_, b in wanted], given
        assert list(islice(_windows(plan), len(windows))) == windows, given
