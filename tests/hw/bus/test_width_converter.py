"""The width converter against its models: every beat of random bursts, with pauses on all channels."""

import random
from typing import Any

import pytest

from intloom.hw.bus.axi4 import BOUNDARY_BYTES, Burst, channel_layouts
from intloom.hw.bus.width_converter import WidthConverter
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.streams import made, run, sink, source

_BURSTS = 10
_NANO, _BASE = preset("nano").replace(axi_addr_bits=40, axi_outstanding=4), preset("base").replace(axi_outstanding=2)
SHAPES = {
    "2 beats": _BASE.replace(axi_data_bits=64, axi_burst=16),
    "4 beats": _BASE.replace(axi_data_bits=32),
    "8 beats": preset("large").replace(axi_data_bits=32, axi_burst=256),
    "2 lanes": _NANO.replace(axi_data_bits=64),
    "8 lanes": _NANO.replace(axi_data_bits=256, axi_burst=4),
}
_ALL = 1.0, 1.0, 1.0


def _addresses(params: HardwareParams, rng: random.Random) -> list[dict[str, int]]:
    """Bursts of words inside 4 KiB; some have the largest length."""
    found = []
    for _ in range(_BURSTS):
        length = rng.choice((1, 2, rng.randint(1, params.burst_words), params.burst_words))
        page, first = rng.getrandbits(20), rng.randint(0, BOUNDARY_BYTES // params.word_bytes - length)
        at = page * BOUNDARY_BYTES + first * params.word_bytes
        size = (params.word_bytes - 1).bit_length()
        fixed = {"id": 0, "lock": 0, "cache": rng.randrange(16), "prot": rng.randrange(8), "qos": rng.randrange(16)}
        found.append({"addr": at, "len": length - 1, "size": size, "burst": Burst.INCR, **fixed})
    return found


def _on_port(address: dict[str, int], params: HardwareParams) -> dict[str, int]:
    """A burst of words as beats: the same bytes."""
    size = (params.beat_bytes - 1).bit_length()
    return {**address, "len": (address["len"] + 1) * params.word_beats - 1, "size": size}


def _fields(values: list[int], layout: Any) -> list[dict[str, int]]:
    """Payloads by field."""
    return [{name: value >> f.offset & (1 << f.width) - 1 for name, f in layout} for value in values]


def _check(
    params: HardwareParams,
    rng: random.Random,
    rates: tuple[float, float, float] = _ALL,
) -> int:
    """Convert random bursts; returns the cycles. `rates` are those of addresses, of data, and of who takes them."""
    converter = made(WidthConverter, params)
    reads, writes = _addresses(params, rng), _addresses(params, rng)
    words = [
        (rng.getrandbits(params.word_bits), rng.getrandbits(params.word_bytes), number == address["len"])
        for address in writes
        for number in range(address["len"] + 1)
    ]
    beats, wanted_words, wanted_beats = [], [], []
    for address in reads:
        length = _on_port(address, params)["len"]
        burst = [
            (rng.getrandbits(params.axi_data_bits), rng.choice((0, 0, 2, 3)), number == length)
            for number in range(length + 1)
        ]
        beats += burst
        wanted_words += WidthConverter.model_read(address["addr"], burst, params)
    left = iter(words)
    for address in writes:
        burst_words = [next(left)[:2] for _ in range(address["len"] + 1)]
        wanted_beats += WidthConverter.model_write(address["addr"], burst_words, params)
    responses = [{"id": 0, "resp": rng.choice((0, 2, 3))} for _ in writes]
    taken: dict[str, list[int]] = {name: [] for name in ("ar", "aw", "w", "r", "b")}
    cycles = 0
    # The slowest of 120 runs took 2.9 cycles an item; a fault may stop everything.
    longest = 10 * (len(wanted_words) + len(wanted_beats))

    async def count(ctx: Any) -> None:
        nonlocal cycles
        while len(taken["r"]) < len(wanted_words) or len(taken["w"]) < len(wanted_beats):
            cycles += 1
            await ctx.tick()

    async def end(ctx: Any) -> None:
        for _ in range(longest):
            await ctx.tick()
        raise AssertionError(f"nothing more comes after {longest} cycles")

    one, other = converter.words, converter.beats
    of_reads = [{"id": 0, "data": data, "resp": resp, "last": last} for data, resp, last in beats]
    of_writes = [{"data": data, "strb": strobe, "last": last} for data, strobe, last in words]
    asked, sent, accepted = rates
    run(
        converter,
        source(one.ar, reads, rng, asked),
        source(one.aw, writes, rng, asked),
        source(one.w, of_writes, rng, sent),
        source(other.r, of_reads, rng, sent),
        source(other.b, responses, rng, sent),
        sink(other.ar, taken["ar"], len(reads), rng, accepted),
        sink(other.aw, taken["aw"], len(writes), rng, accepted),
        sink(other.w, taken["w"], len(wanted_beats), rng, accepted),
        sink(one.r, taken["r"], len(wanted_words), rng, accepted),
        sink(one.b, taken["b"], len(responses), rng, accepted),
        count,
        background=[end],
    )
    port = channel_layouts(params.axi_addr_bits, params.axi_data_bits)
    word = channel_layouts(params.axi_addr_bits, params.word_bits)
    assert _fields(taken["ar"], port["ar"]) == [_on_port(address, params) for address in reads]
    assert _fields(taken["aw"], port["aw"]) == [_on_port(address, params) for address in writes]
    assert [(r["data"], r["resp"], r["last"]) for r in _fields(taken["r"], word["r"])] == wanted_words
    assert _fields(taken["b"], port["b"]) == responses
    passed = [(w["data"], w["strb"], w["last"]) for w in _fields(taken["w"], port["w"])]
    assert [beat[1:] for beat in passed] == [beat[1:] for beat in wanted_beats]
    at = (a["addr"] + k * params.beat_bytes for a in writes for k in range(_on_port(a, params)["len"] + 1))
    # Data of other lanes has no meaning.
    lanes = [(1 << 8 * params.beat_bytes) - 1 << 8 * (first % params.port_bytes) for first in at]
    assert [beat[0] & mask for beat, mask in zip(passed, lanes, strict=True)] == [beat[0] for beat in wanted_beats]
    return cycles


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rates", [_ALL, (0.6, 0.8, 0.6), (0.2, 1.0, 1.0)])
def test_every_beat_follows_the_model(shape: str, rates: tuple[float, float, float], rng: random.Random) -> None:
    _check(SHAPES[shape], rng, rates)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_beat_passes_in_every_cycle(shape: str, rng: random.Random) -> None:
    params = SHAPES[shape].replace(axi_outstanding=16)
    state = rng.getstate()
    cycles = _check(params, rng)
    rng.setstate(state)
    most = max(sum(_on_port(a, params)["len"] + 1 for a in _addresses(params, rng)) for _ in range(2))
    # A word on a wider port waits for the lane of its first burst.
    assert most <= cycles <= most + 4


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("channel", ["ar", "aw"])
def test_bursts_pass_before_their_data(channel: str, shape: str) -> None:
    """On a wider port, which keeps their lanes, as many as may be outstanding."""
    params = SHAPES[shape].replace(axi_outstanding=8)
    converter, cycles, passed = made(WidthConverter, params), 20, 0

    async def bench(ctx: Any) -> None:
        nonlocal passed
        words, beats = getattr(converter.words, channel), getattr(converter.beats, channel)
        ctx.set(words.valid, 1)
        ctx.set(beats.ready, 1)
        for _ in range(cycles):
            *_, fire = await ctx.tick().sample(words.ready & beats.valid)
            passed += fire

    run(converter, bench)
    assert passed == (cycles if params.word_beats > 1 else params.axi_outstanding)
