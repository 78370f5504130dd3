"""Operand stage against its model."""

import random
from typing import Any

import pytest

from intloom.hw.vector.operand_stage import LANE_FUNCTIONS, OperandStage
from intloom.hw.vector.pool import SUM_BITS
from tests.hw.idle import check_idle
from tests.hw.streams import made, run
from tests.hw.vector.slices import idle_cycles, with_lanes


@pytest.mark.parametrize("lanes", [2, 1])
@pytest.mark.parametrize(
    ("function", "multiplier"), [("", True), ("", False), ("average", False), *((f, True) for f in LANE_FUNCTIONS)]
)
def test_operands_follow_their_model(lanes: int, function: str, multiplier: bool, rng: random.Random) -> None:
    operands = made(OperandStage, with_lanes(lanes).replace(vector_multiply=multiplier))
    zeros = (rng.randint(-128, 127), rng.randint(-128, 127)) if function == "multiply" else (0, 0)
    found: list[tuple[int, int]] = []
    expected: list[tuple[int, int]] = []
    edges = (-128, -1, 0, 127)

    async def bench(ctx: Any) -> None:
        ctx.set(operands.zp_a, zeros[0])
        ctx.set(operands.zp_b, zeros[1])
        for flag in LANE_FUNCTIONS:
            ctx.set(getattr(operands, flag), flag == function)
        for _ in range(60):
            await idle_cycles(ctx, rng, operands.valid)
            for lane in range(lanes):
                a, b = (rng.choice((*edges, rng.randint(-128, 127))) for _ in range(2))
                total = rng.randrange(-(1 << (SUM_BITS - 1)), 1 << (SUM_BITS - 1))
                for name, value in (("a", a), ("b", b), ("total", total)):
                    ctx.set(getattr(operands, name)[lane], value)
                expected.append(OperandStage.model(a, b, total, *zeros, function))
            await ctx.tick()
        ctx.set(operands.valid, 0)
        await ctx.tick().repeat(OperandStage.LATENCY + 1)

    async def watch(ctx: Any) -> None:
        async for *_, valid, x1, x2 in ctx.tick().sample(operands.result_valid, operands.x1, operands.x2):
            if valid:
                found.extend((x1[lane], x2[lane]) for lane in range(lanes))

    run(operands, bench, background=[watch])
    assert found == expected


def test_registers_keep_their_values_without_work(rng: random.Random) -> None:
    check_idle(OperandStage(with_lanes(2)), rng, "valid")
