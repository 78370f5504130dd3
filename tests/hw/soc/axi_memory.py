"""A memory behind an AXI4 port of Amaranth's simulator: random pauses, responses in request order.

Addresses and data of writes are taken in either order, as AXI4 allows.
"""

import random
from collections import deque
from functools import partial
from typing import Any

from intloom.hw.bus.axi4 import Resp


class AxiMemory:
    """Words by word address; addresses in `bad` answer with SLVERR. On a wider port each beat carries a word."""

    def __init__(self, port: Any, word_bytes: int, rng: random.Random, rate: float = 0.6) -> None:
        self.port, self.word_bytes, self.rng, self.rate = port, word_bytes, rng, rate
        self.port_bytes = len(port.w.payload.data) // 8
        self.words: dict[int, int] = {}
        self.bad: set[int] = set()
        self.order: list[tuple[str, int, int]] = []
        """Channel, identifier and word address of each burst."""
        self._taken: dict[str, deque[Any]] = {"aw": deque(), "w": deque()}

    def processes(self) -> list[Any]:
        """Background processes for `run`."""
        return [self._reads, self._writes, *(partial(self._collect, name) for name in self._taken)]

    async def _take(self, ctx: Any, stream: Any) -> Any:
        while True:
            ready = self.rng.random() < self.rate
            ctx.set(stream.ready, ready)
            *_, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
            if valid and ready:
                ctx.set(stream.ready, 0)
                return payload

    async def _offer(self, ctx: Any, stream: Any, **fields: int) -> None:
        while self.rng.random() >= self.rate:
            await ctx.tick()
        ctx.set(stream.payload, fields)
        ctx.set(stream.valid, 1)
        ready = 0
        while not ready:
            *_, ready = await ctx.tick().sample(stream.ready)
        ctx.set(stream.valid, 0)

    def _response(self, word: int) -> int:
        return Resp.SLVERR if word in self.bad else Resp.OKAY

    def _lane(self, word: int) -> int:
        return word * self.word_bytes % self.port_bytes

    async def _reads(self, ctx: Any) -> None:
        while True:
            request = await self._take(ctx, self.port.ar)
            first = request.addr // self.word_bytes
            self.order.append(("ar", request.id, first))
            for beat in range(request.len + 1):
                word = first + beat
                data = self.words.get(word, 0) << 8 * self._lane(word)
                fields = {"id": request.id, "data": data, "resp": self._response(word)}
                await self._offer(ctx, self.port.r, **fields, last=int(beat == request.len))

    async def _collect(self, name: str, ctx: Any) -> None:
        while True:
            self._taken[name].append(await self._take(ctx, getattr(self.port, name)))

    async def _next(self, ctx: Any, name: str) -> Any:
        while not self._taken[name]:
            await ctx.tick()
        return self._taken[name].popleft()

    async def _writes(self, ctx: Any) -> None:
        while True:
            request = await self._next(ctx, "aw")
            first = request.addr // self.word_bytes
            self.order.append(("aw", request.id, first))
            for beat in range(request.len + 1):
                data = await self._next(ctx, "w")
                assert data.last == (beat == request.len)
                lane = self._lane(first + beat)
                mask = sum(0xFF << 8 * i for i in range(self.word_bytes) if data.strb >> (lane + i) & 1)
                assert data.strb >> lane << lane == data.strb < 1 << lane + self.word_bytes
                old = self.words.get(first + beat, 0)
                self.words[first + beat] = (old & ~mask) | (data.data >> 8 * lane & mask)
            await self._offer(ctx, self.port.b, id=request.id, resp=self._response(first))
