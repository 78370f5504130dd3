"""Queues and semaphores: instructions in order, each no sooner than its waits allow."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.hdl import Const

from hw.control.queue import COUNTS_LAYOUT, UnitQueue, used_bits
from hw.spec import isa
from hw.spec.isa import INSTRUCTIONS, QUEUED_UNITS, Unit
from hw.spec.params import preset
from tests.hw.streams import run, source

SAMPLE = {Unit.LOAD: "LOAD", Unit.MAC: "CONV", Unit.VEC: "VMUL", Unit.STORE: "STORE"}


@pytest.mark.parametrize("unit", QUEUED_UNITS)
def test_the_first_instruction_waits_for_all_counts(unit: Unit, seed: int) -> None:
    rng = random.Random(seed)
    queue = UnitQueue(preset("nano"), unit)
    waits = [[rng.randint(0, 12) for _ in QUEUED_UNITS] for _ in range(20)]
    names = [f"wait_{u.name.lower()}" for u in QUEUED_UNITS]
    program = [isa.make(SAMPLE[unit], **dict(zip(names, w, strict=True))) for w in waits]
    words = [int.from_bytes(isa.encode(i), "little") for i in program]
    items = [{"instruction": word, "index": index} for index, word in enumerate(words)]
    counts = [0] * len(QUEUED_UNITS)
    taken: list[tuple[int, int]] = []
    seen_waiting = False

    async def work(ctx: Any) -> None:
        nonlocal seen_waiting
        while len(taken) < len(items):
            ctx.set(queue.o.ready, rng.random() < 0.5)
            valid, ready, entry = ctx.get(queue.o.valid), ctx.get(queue.o.ready), ctx.get(queue.o.payload)
            seen_waiting |= bool(ctx.get(queue.waiting))
            if valid:
                needed = waits[len(taken)]
                assert all(c >= n for c, n in zip(counts, needed, strict=True)), "offered before its waits held"
                if ready:
                    taken.append((entry.instruction, entry.index))
            await ctx.tick()
            if rng.random() < 0.1:
                counts[rng.randrange(4)] += 1
                ctx.set(queue.counts, COUNTS_LAYOUT.const(counts))

    run(queue, source(queue.i, items, rng, 0.7), work)
    assert taken == [(word, index) for index, word in enumerate(words)]
    assert seen_waiting


@pytest.mark.parametrize("unit", QUEUED_UNITS)
def test_the_queue_keeps_every_bit_that_an_instruction_of_its_unit_uses(unit: Unit) -> None:
    widths = [sum(f.width for f in spec.fields) for spec in INSTRUCTIONS if spec.unit is unit]
    assert used_bits(unit) == max(widths)
    assert len(Const(0, used_bits(unit))) <= isa.INSTRUCTION_BITS
