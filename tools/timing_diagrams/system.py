"""A whole accelerator in Amaranth's simulator: register accesses, a memory behind AXI, a program."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Module

from intloom.hw.bus.axi4 import Resp
from intloom.hw.npu import Npu
from intloom.hw.spec import isa, regs
from intloom.hw.spec.identity import begin
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.program_check import add_check

PARAMS = preset("nano").replace(scratch_kib=4, axi_burst=4)
"""Small enough to simulate in seconds."""
DOMAINS = ("sync", "engine")
LATENCY = 12
"""Cycles from an address beat to its first data beat."""
PROGRAM_WORD = 64
"""First word of the program in memory."""


class _Accelerator(Npu):
    """The accelerator for Amaranth's simulator, which ticks both clock domains itself."""

    def _clock_engine(self, m: Module) -> None:
        pass


@dataclass
class System:
    """An accelerator, its host and its memory."""

    instructions: list[isa.Instruction]
    params: HardwareParams = PARAMS
    broken_beat: int | None = None
    """Number of the data read beat, instructions not counted, that is answered with SLVERR."""
    npu: Npu = field(init=False)

    def __post_init__(self) -> None:
        self.npu = _Accelerator(self.params)
        self.instructions = [begin(self.params), *self.instructions]
        self.program = add_check(isa.encode(i) for i in self.instructions)

    def _word(self, address: int) -> int:
        size = self.params.word_bytes
        offset = (address // size - PROGRAM_WORD) * size
        if 0 <= offset < len(self.program):
            return int.from_bytes(self.program[offset : offset + size].ljust(size, b"\0"), "little")
        return (address * 0x9E3779B9) % (1 << 8 * size)

    async def write(self, ctx: Any, register: str, value: int) -> None:
        """Write a register and wait for the response."""
        npu: Any = self.npu
        ctx.set(npu.s_axi_awaddr, regs.register(register).offset)
        ctx.set(npu.s_axi_wdata, value)
        ctx.set(npu.s_axi_wstrb, 0xF)
        ctx.set(npu.s_axi_awvalid, 1)
        ctx.set(npu.s_axi_wvalid, 1)
        ctx.set(npu.s_axi_bready, 1)
        address = data = response = False
        while not (address and data and response):
            *_, aw, w, b = await ctx.tick().sample(npu.s_axi_awready, npu.s_axi_wready, npu.s_axi_bvalid)
            address, data, response = address or bool(aw), data or bool(w), response or bool(b)
            ctx.set(npu.s_axi_awvalid, not address)
            ctx.set(npu.s_axi_wvalid, not data)

    async def start(self, ctx: Any) -> None:
        """Program the registers and start."""
        await self.write(ctx, "PROGRAM", PROGRAM_WORD)
        await self.write(ctx, "LENGTH", len(self.instructions))
        await self.write(ctx, "LIMIT", 1 << 20)
        await self.write(ctx, "IRQ_ENABLE", regs.pack("IRQ_ENABLE", done=1, error=1))
        await self.write(ctx, "CONTROL", regs.pack("CONTROL", start=1))

    async def read_memory(self, ctx: Any) -> None:
        """Answer read bursts in order, one beat a cycle."""
        npu: Any = self.npu
        beats: deque[tuple[int, int, int, int]] = deque()
        cycle = data_beats = 0
        ctx.set(npu.m_axi_arready, 1)
        while True:
            *_, ar, address, length, r = await ctx.tick().sample(
                npu.m_axi_arvalid & npu.m_axi_arready,
                npu.m_axi_araddr,
                npu.m_axi_arlen,
                npu.m_axi_rvalid & npu.m_axi_rready,
            )
            cycle += 1
            if r:
                beats.popleft()
            if ar:
                size = self.params.word_bytes
                is_program = 0 <= address // size - PROGRAM_WORD < -(-len(self.program) // size)
                for beat in range(length + 1):
                    broken = not is_program and data_beats == self.broken_beat
                    data_beats += not is_program
                    response = int(Resp.SLVERR if broken else Resp.OKAY)
                    beats.append((cycle + LATENCY, self._word(address + beat * size), response, beat == length))
            offer = bool(beats) and beats[0][0] <= cycle
            ctx.set(npu.m_axi_rvalid, offer)
            if offer:
                _, word, code, last = beats[0]
                ctx.set(npu.m_axi_rdata, word)
                ctx.set(npu.m_axi_rresp, code)
                ctx.set(npu.m_axi_rlast, last)

    async def write_memory(self, ctx: Any) -> None:
        """Accept every write burst and answer it."""
        npu: Any = self.npu
        owed = 0
        ctx.set(npu.m_axi_awready, 1)
        ctx.set(npu.m_axi_wready, 1)
        while True:
            *_, last, b = await ctx.tick().sample(
                npu.m_axi_wvalid & npu.m_axi_wready & npu.m_axi_wlast, npu.m_axi_bvalid & npu.m_axi_bready
            )
            owed += last - b
            ctx.set(npu.m_axi_bvalid, owed > 0)
