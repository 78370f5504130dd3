"""Diagrams of the MAC unit: weight double buffer, accumulator banks, epilogue pipeline."""

from functools import cache
from typing import Any

from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.epilogue.epilogue import Epilogue
from intloom.hw.mac.unit import MacUnit
from intloom.hw.spec import isa
from intloom.hw.spec.params import preset
from tools.timing_diagrams.diagram import Diagram, Recording, Row
from tools.timing_diagrams.recording import record

_PARAMS = preset("nano").replace(lanes=2, strip=16)
_SUMS_STAGE = Accumulators.READOUT_LATENCY
_BYTES_STAGE = Epilogue.LOOKUP_STAGE


def _convolution(*diagrams: Diagram, **fields: int) -> Recording:
    unit: Any = MacUnit(_PARAMS)
    conv = isa.make("CONV", kernel_h=1, kernel_w=1, out_base=512, **fields)

    async def bench(ctx: Any) -> None:
        for port in (unit.act0, unit.act1, unit.residual, unit.results):
            ctx.set(port.ready, 1)
        await ctx.tick().repeat(4)
        ctx.set(unit.unit.instruction, int.from_bytes(isa.encode(conv), "little"))
        ctx.set(unit.unit.valid, 1)
        await ctx.tick().until(unit.unit.ready)
        ctx.set(unit.unit.valid, 0)
        await ctx.tick().until(unit.unit.done)
        await ctx.tick().repeat(8)

    return record(unit, bench, diagrams)


@cache
def two_strips() -> Recording:
    """A pointwise CONV of two strips of 16 pixels and two weight tiles."""
    sizes = {f"{side}_{axis}": length for side in ("in", "out") for axis, length in (("h", 4), ("w", 8))}
    return _convolution(WEIGHTS, BANKS, in_blocks=2, in_row=8, in_plane=32, out_row=8, **sizes)


@cache
def two_pixels() -> Recording:
    """A pointwise CONV of two pixels: four items in the epilogue."""
    return _convolution(EPILOGUE, in_w=2, out_w=2, in_h=1, out_h=1, in_row=2, out_row=2)


WEIGHTS = Diagram(
    title="Weight tiles: load of the shadow registers, swap",
    start="fetcher.taken",
    lead=6,
    cycles=30,
    rows=[
        "fetcher",
        Row("read_valid", "fetcher.read_valid"),
        Row("ready", "fetcher.ready"),
        Row("taken", "fetcher.taken"),
        "array",
        Row("load column", "array.load", lambda v: str(v.bit_length() - 1), valid="array.load"),
        Row("swap", "array.swap"),
        Row("valid", "array.valid"),
    ],
)

BANKS = Diagram(
    title="End of a strip: switch of the accumulator bank",
    start="readout.strip_ready",
    lead=7,
    cycles=28,
    rows=[
        "accumulate",
        Row("valid", "accumulators.valid"),
        Row("bank", "accumulators.address", bit=_PARAMS.strip.bit_length() - 1),
        Row("pixel", "accumulators.address", lambda v: str(v % _PARAMS.strip), valid="accumulators.valid"),
        "readout",
        Row("strip_ready", "readout.strip_ready"),
        Row("item", "readout.item"),
        Row("pixel", "readout.address", lambda v: str(v % _PARAMS.strip), valid="readout.item"),
        Row("group", "readout.group", str, valid="readout.item"),
    ],
)

EPILOGUE = Diagram(
    title="Epilogue: four items of two bytes",
    start="epilogue.valid",
    lead=2,
    cycles=28,
    rows=[
        Row("item", "epilogue.valid"),
        Row("group", "epilogue.group", str, valid="epilogue.valid"),
        Row("sums valid", f"epilogue.valid{_SUMS_STAGE}"),
        Row("requantized", f"epilogue.valid{_BYTES_STAGE}"),
        Row("result_valid", "epilogue.result_valid"),
        "write",
        Row("valid", "writer.port.valid"),
        Row("mask", "writer.port.mask", lambda v: f"{v:04b}", valid="writer.port.valid"),
        Row("unit.done", "unit.done"),
    ],
)
