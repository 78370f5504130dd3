"""Residual adder: operands wait in the FIFO, and sums follow with the stated latency."""

import random
from collections import deque
from itertools import product
from typing import Any

import pytest

from intloom.hw.mac.epilogue.residual_adder import ResidualAdder
from intloom.hw.mac.weights.constants_loader import ConstantKind
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.params import preset
from tests.hw.idle import check_idle
from tests.hw.mac.constants import write_affine, write_constant
from tests.hw.streams import made, run

NANO = preset("nano")
DEPTH = 16


@pytest.mark.parametrize("lanes", [1, 4])
def test_residuals_are_added_in_order(lanes: int, rng: random.Random) -> None:
    adder = made(ResidualAdder, NANO.replace(lanes=lanes), DEPTH)

    async def batch(ctx: Any, affine: Affine, pairs: list[tuple[bytes, bytes]]) -> None:
        await write_affine(ctx, adder, affine)
        for kind in {*ConstantKind} - {ConstantKind.RESIDUAL}:
            await write_constant(ctx, adder, kind, rng.randrange(4), rng.getrandbits(8))
        ctx.set(adder.activate, 1)
        ctx.set(adder.shift, affine.shift)
        ctx.set(adder.even, affine.even)
        await ctx.tick()
        ctx.set(adder.activate, 0)
        arrived, met, left, result_next, due = 0, 0, 0, False, deque([False] * adder.LATENCY)
        # The FIFO is full now and then.
        first = rng.choice((1, DEPTH))
        while left < len(pairs):
            arrives = arrived < len(pairs) and arrived - met < DEPTH and rng.random() < 0.7
            # The next instruction's constants.
            noise = {"kind": ConstantKind.RESIDUAL, "index": rng.randrange(4), "word": rng.getrandbits(32)}
            ctx.set(adder.write, noise)
            ctx.set(adder.shift, rng.randrange(48))
            ctx.set(adder.even, rng.randrange(2))
            ctx.set(adder.valid, result_next)
            due.append(result_next)
            for lane in range(lanes):
                ctx.set(adder.results[lane], pairs[met - 1][0][lane] if result_next else rng.randrange(256))
                ctx.set(adder.operands[lane], pairs[arrived][1][lane] if arrives else rng.randrange(256))
            result_next = met < arrived >= first and rng.random() < 0.7
            ctx.set(adder.arrived, arrives)
            ctx.set(adder.result_next, result_next)
            met, arrived = met + result_next, arrived + arrives
            assert ctx.get(adder.sums_valid) == due.popleft()
            if ctx.get(adder.sums_valid):
                found = [ctx.get(adder.sums[lane]) for lane in range(lanes)]
                values = (memoryview(data).cast("b") for data in pairs[left])
                expected = [ResidualAdder.model(*pair, affine) & 0xFF for pair in zip(*values, strict=True)]
                assert found == expected
                left += 1
            await ctx.tick()

    async def bench(ctx: Any) -> None:
        # With a shift of 1 or 2, every second or fourth sum is a tie, so that both roundings are seen.
        for even, shift in product((False, True), (0, 1, 2, 43, rng.randint(3, 30))):
            most = min(1 << shift, (1 << 24) - 1)
            m1, m2 = (rng.randint(-most, most) for _ in range(2))
            c = rng.randint(-(32 << shift), 32 << shift) if shift < 38 else rng.randrange(-(1 << 43), 1 << 43)
            affine = Affine(m1, m2, c, shift, even)
            await batch(ctx, affine, [(rng.randbytes(lanes), rng.randbytes(lanes)) for _ in range(60)])

    run(adder, bench)


def test_registers_keep_their_values_without_work(rng: random.Random) -> None:
    check_idle(ResidualAdder(NANO.replace(lanes=4), DEPTH), rng, "valid", "arrived", "result_next", "activate", "write")
