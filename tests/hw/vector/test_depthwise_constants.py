"""Depthwise constants: the destination of every word."""

import random
from typing import Any

import pytest

from intloom.hw.spec.vector_depthwise import TAPS, constant_words
from intloom.hw.vector.depthwise_constants import DepthwiseConstants
from tests.hw.streams import made, run
from tests.hw.vector.depthwise import NANO


@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_every_word_has_its_destination(pause: float, rng: random.Random) -> None:
    constants = made(DepthwiseConstants, NANO)

    async def bench(ctx: Any) -> None:
        for kernel_h in rng.sample(range(1, 16), 15):
            kernel_w = rng.randint(1, TAPS)
            ctx.set(constants.kernel_h, kernel_h)
            ctx.set(constants.kernel_w, kernel_w)
            ctx.set(constants.start, 1)
            await ctx.tick()
            ctx.set(constants.start, 0)
            for number, (kind, row, column) in enumerate(DepthwiseConstants.model(kernel_h, kernel_w)):
                assert not ctx.get(constants.loaded)
                assert ctx.get(constants.weights_loaded) == (number >= kernel_h * kernel_w)
                if number >= kernel_h * kernel_w:
                    # The next instruction's: the weights have come.
                    ctx.set(constants.kernel_h, rng.randint(1, 15))
                    ctx.set(constants.kernel_w, rng.randint(1, TAPS))
                while rng.random() < pause:
                    ctx.set(constants.word, rng.getrandbits(32))
                    await ctx.tick()
                    write = ctx.get(constants.write)
                    assert not (write.weights or write.biases or write.scales)
                word = rng.getrandbits(32)
                ctx.set(constants.word, word)
                ctx.set(constants.valid, 1)
                assert ctx.get(constants.loaded) == (number == constant_words(kernel_h, kernel_w) - 1)
                await ctx.tick()
                ctx.set(constants.valid, 0)
                write = ctx.get(constants.write)
                assert write.word == word
                enables = {"weights": write.weights, "biases": write.biases, "scales": write.scales}
                assert enables == dict.fromkeys(enables, 0) | {kind: 1 << column}
                assert (write.row if kind == "weights" else write.group) == row
            assert ctx.get(constants.loaded)

    run(constants, bench)


def test_a_start_forgets_the_words_before(rng: random.Random) -> None:
    constants = made(DepthwiseConstants, NANO)

    async def bench(ctx: Any) -> None:
        for count in (4, 8, 17, 20, 0):
            ctx.set(constants.kernel_h, 4)
            ctx.set(constants.kernel_w, 3)
            ctx.set(constants.start, 1)
            await ctx.tick()
            ctx.set(constants.start, 0)
            assert not ctx.get(constants.weights_loaded) and not ctx.get(constants.loaded)
            for word in range(count):
                ctx.set(constants.valid, 1)
                await ctx.tick()
                ctx.set(constants.valid, 0)
                write = ctx.get(constants.write)
                if word < 3 * 4:
                    assert (write.weights, write.row) == (1 << TAPS - 3 + word % 3, word // 3)
            assert ctx.get(constants.weights_loaded) == (count >= 3 * 4)
            assert ctx.get(constants.loaded) == (count == 20)

    run(constants, bench)
