"""Coded runs: the decoder makes the words that `decode_words` makes, and rejects what it rejects."""

import random
from typing import Any

import pytest
from amaranth.hdl import Cat

from intloom.common.errors import EncodingError
from intloom.compiler.program.word_code import decode_words, encode_words
from intloom.hw.dma.word_decoder import WordDecoder
from intloom.hw.spec.params import preset
from tests.hw.streams import Process, made, run, source

SHAPES = ["nano", "base"]
_BROKEN_CYCLES = 8


def random_words(rng: random.Random, count: int, rows: int, widths: range = range(9)) -> bytes:
    """Words of random widths: a byte of each needs all of its bits."""
    found = bytearray()
    for width in rng.choices(widths, k=count):
        lowest = -(1 << width >> 1)
        word = [lowest + rng.randrange(1 << width) for _ in range(rows)]
        word[rng.randrange(rows)] = lowest
        found += bytes(byte % 256 for byte in word)
    return bytes(found)


class DecoderBench:
    """A decoder that gets runs of (code, words), until one is broken."""

    def __init__(self, name: str, runs: list[tuple[bytes, int]], rng: random.Random, offer: float, take: float) -> None:
        self.rows = preset(name).rows
        self.decoder = made(WordDecoder, preset(name))
        self.runs, self.rng, self.take = runs, rng, take
        self.words: list[bytes] = []
        self.cycles = 0
        self.broken = False
        beats = [b for code, _ in runs for b in self._beats(code)]
        self.offer: Process = source(self.decoder.i, beats, rng, offer)

    def _beats(self, code: bytes) -> list[int]:
        return [int.from_bytes(code[k : k + self.rows], "little") for k in range(0, len(code), self.rows)]

    async def sink(self, ctx: Any) -> None:
        """Take the words of every run, which ends with the last of them."""
        decoder = self.decoder
        ctx.set(decoder.active, 1)
        for code, count in self.runs:
            ctx.set(decoder.beats, len(code) // self.rows)
            for number in range(count):
                ctx.set(decoder.last, number == count - 1)
                fire = 0
                while not fire:
                    ctx.set(decoder.o.ready, self.rng.random() < self.take)
                    fired = decoder.o.valid & decoder.o.ready
                    *_, fire, word, self.broken = await ctx.tick().sample(fired, decoder.o.payload, decoder.broken)
                    self.cycles += 1
                    if self.broken:
                        await self._drain(ctx)
                        return
                self.words.append(word.to_bytes(self.rows, "little"))
        ctx.set(decoder.active, 0)

    async def _drain(self, ctx: Any) -> None:
        """A broken decoder takes all beats and offers no word, until reset."""
        decoder = self.decoder
        for _ in range(_BROKEN_CYCLES):
            ctx.set(decoder.o.ready, self.rng.random() < self.take)
            ctx.set(decoder.active, self.rng.getrandbits(1))
            *_, state = await ctx.tick().sample(Cat(decoder.i.ready, decoder.broken, decoder.o.valid))
            assert state == 0b011

    def simulate(self) -> None:
        """Run to the end of the words, or of the beats if they are broken: none of them may hang."""
        run(self.decoder, self.sink, background=[self.offer])


@pytest.mark.parametrize("name", SHAPES)
def test_the_words_of_random_runs(name: str, rng: random.Random) -> None:
    rows = preset(name).rows
    for offer, take in ((0.6, 0.9), (1.0, 0.7)):
        words = [random_words(rng, count, rows) for count in (1, 2, 3, 9, rng.randint(1, 60))]
        runs = [(encode_words(data, rows), len(data) // rows) for data in words]
        bench = DecoderBench(name, runs, rng, offer, take)
        bench.simulate()
        assert b"".join(bench.words) == b"".join(words)


@pytest.mark.parametrize("name", ["base"])
def test_a_word_comes_every_cycle(name: str, rng: random.Random) -> None:
    """With at most 6 bits a byte, from the first beat on; a start, a beat and the first widths come before it."""
    rows, count = preset(name).rows, 100
    data = random_words(rng, count, rows, range(7))
    bench = DecoderBench(name, [(encode_words(data, rows), count)], rng, 1.0, 1.0)
    bench.simulate()
    assert bench.cycles == count + WordDecoder.LATENCY + 1


def _mutated(rng: random.Random, code: bytes, rows: int) -> bytes:
    """Code with a flipped bit, often in its first widths, or with a beat more or less."""
    changed = bytearray(code)
    match rng.randrange(4):
        case 0:
            changed += bytes(rows)
        case 1 if len(code) > rows:
            del changed[-rows:]
        case 2:
            changed[rng.randrange(max(1, rows // 8))] ^= 1 << rng.randrange(min(8, rows))
        case _:
            changed[rng.randrange(len(code))] ^= 1 << rng.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("width", range(9))
def test_a_beat_more_than_the_words_need_is_broken(width: int, rng: random.Random) -> None:
    """Wherever in a beat the last word ends, and whether or not the other beat comes before its end."""
    rows, count = preset("nano").rows, rng.randint(1, 2)
    code = encode_words(random_words(rng, count, rows, range(width, width + 1)), rows) + bytes(rows)
    for offer, take in ((1.0, 0.2), (0.3, 1.0)):
        bench = DecoderBench("nano", [(code, count)], rng, offer, take)
        bench.simulate()
        assert bench.broken


@pytest.mark.parametrize("name", ["nano", "small"])
def test_what_is_no_code_is_broken(name: str, rng: random.Random) -> None:
    rows, outcomes = preset(name).rows, set[int]()
    for number in range(100):
        if number >= 12 and outcomes == {False, True}:
            break
        data = random_words(rng, rng.randint(1, 12), rows)
        code, count = _mutated(rng, encode_words(data, rows), rows), len(data) // rows
        bench = DecoderBench(name, [(code, count)], rng, rng.choice([0.5, 1.0]), 0.8)
        bench.simulate()
        try:
            expected = decode_words(code, count, rows)
        except EncodingError:
            assert bench.broken
        else:
            assert not bench.broken
            assert b"".join(bench.words) == expected
        outcomes.add(bench.broken)
    assert outcomes == {False, True}
