"""Testbench environment of the whole accelerator in cocotb: independent bus models, a driver, monitors."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, First, RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp

from intloom.hw.spec import isa, regs
from intloom.hw.spec.params import HardwareParams, from_dict
from intloom.hw.spec.program_check import add_check
from intloom.sim.host.run_program import RunSetup, load_program, read_status, start_program
from tests.hw.npu.bursts import BurstRules

PARAMS_VARIABLE = "INTLOOM_NPU_PARAMS"
SEED_VARIABLE = "INTLOOM_NPU_SEED"
MEMORY_WORDS = 1 << 16
MEMORY_BASE = 0x3_4000_0000
"""Where the memory base register points, and the memory model begins, as far as the hardware has address bits."""
PROGRAM_WORD = 5
"""Not on any boundary."""
PERIOD_NS = 10
MASTER = {
    "aw": ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos"),
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
    "ar": ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos"),
    "r": ("id", "data", "resp", "last"),
}
SLAVE = {"aw": ("addr", "prot"), "w": ("data", "strb"), "b": ("resp",), "ar": ("addr", "prot"), "r": ("data", "resp")}


class Poison:
    """A range of memory that answers with an error."""

    def __init__(self, origin: int, size: int) -> None:
        self.origin, self.size = origin, size
        self.low = self.high = 0
        self.response = AxiResp.OKAY

    def set(self, low: int, high: int, response: AxiResp) -> None:
        """Answer accesses to the port's words whose first byte is from `low` up to `high` with `response`."""
        self.low, self.high, self.response = low, high, response

    def hits(self, address: int) -> bool:
        """Whether the byte at `address` is poisoned or outside the memory."""
        offset = address - self.origin
        return not 0 <= offset < self.size or self.low <= offset < self.high


class PoisonedRam(AxiRam):
    """AxiRam whose poisoned words answer SLVERR or DECERR; the base class ignores address bits above its size."""

    def __init__(self, dut: Any, origin: int, size: int, *, reset: bool = True) -> None:
        assert origin % size == 0
        super().__init__(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst if reset else None, size=size)
        self.poison = Poison(origin, size)
        self._patch(self.read_if, self.read_if.r_channel, "rresp", "_read")
        self._patch(self.write_if, self.write_if.b_channel, "bresp", "_write")

    def _patch(self, side: Any, channel: Any, field: str, access: str) -> None:
        original, send = getattr(side, access), channel.send

        async def checked(address: int, what: Any) -> Any:
            if self.poison.hits(address):
                raise ValueError("poisoned")
            return await original(address, what)

        async def answered(item: Any) -> None:
            if getattr(item, field) == AxiResp.SLVERR:
                setattr(item, field, self.poison.response or AxiResp.DECERR)
            await send(item)

        setattr(side, access, checked)
        channel.send = answered


Passed = Callable[[str, dict[str, int]], None]


class Channel:
    """One channel of a port; what is offered on it stays, unchanged, until it is taken."""

    def __init__(self, dut: Any, prefix: str, name: str, fields: Sequence[str]) -> None:
        self.name = name
        self._valid, self._ready = (getattr(dut, f"{prefix}_{name}{end}") for end in ("valid", "ready"))
        self._fields = {field: getattr(dut, f"{prefix}_{name}{field}") for field in fields}
        self._held: dict[str, int] | None = None

    def look(self) -> dict[str, int] | None:
        """What is passing in this cycle, if anything."""
        if not int(self._valid.value):
            assert self._held is None, f"{self.name}valid fell before {self.name}ready"
            return None
        now = {field: int(signal.value) for field, signal in self._fields.items()}
        assert self._held in (None, now), f"{self.name} changed before it was taken: {self._held} to {now}"
        taken = bool(int(self._ready.value))
        self._held = None if taken else now
        return now if taken else None


class Host:
    """One accelerator with its memory, as a driver sees it."""

    def __init__(self, dut: Any, name: str) -> None:
        self.dut = dut
        self.params: HardwareParams = from_dict(json.loads(os.environ[PARAMS_VARIABLE]))
        self.rng = random.Random(f"{os.environ[SEED_VARIABLE]} {name}")
        self.word = self.params.word_bytes
        self.memory_bytes = MEMORY_WORDS * self.word

    async def begin(self, stalls: float = 0.0, *, slave_reset: bool = True) -> Host:
        """Clock, bus models, monitors, reset; each side of every channel pauses in a share `stalls` of the cycles.

        Without `slave_reset` the memory does not see the reset input.
        """
        cocotb.start_soon(Clock(self.dut.clk, PERIOD_NS, unit="ns").start())
        self.dut.rst.value = 1
        origin = MEMORY_BASE % (1 << self.params.axi_addr_bits)
        self.ram = PoisonedRam(self.dut, origin, self.memory_bytes, reset=slave_reset)
        self.bus = AxiLiteMaster(AxiLiteBus.from_prefix(self.dut, "s_axi"), self.dut.clk, self.dut.rst)
        self.set_stalls(stalls)
        await ClockCycles(self.dut.clk, 3)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 2)
        self.rules = BurstRules(self.params, range(0))
        user = {name: ("user",) for name in ("ar", "aw") if self.params.axi_user_bits}
        watched = [Channel(self.dut, "m_axi", name, (*fields, *user.get(name, ()))) for name, fields in MASTER.items()]
        cocotb.start_soon(self._watch(watched, self.rules.passed))
        watched = [Channel(dut=self.dut, prefix="s_axi", name=name, fields=fields) for name, fields in SLAVE.items()]
        cocotb.start_soon(self._watch(watched))
        return self

    def set_stalls(self, share: float) -> None:
        """Let the memory's channels pause at random."""
        read, write = self.ram.read_if, self.ram.write_if
        for channel in (read.ar_channel, read.r_channel, write.aw_channel, write.w_channel, write.b_channel):
            rng = random.Random(self.rng.random())
            pauses = ((r.random() < share) for r in itertools.repeat(rng))
            channel.set_pause_generator(pauses if share else None)
            channel.pause = False

    async def _watch(self, channels: Sequence[Channel], passed: Passed = lambda _name, _payload: None) -> None:
        """Look at all channels at every clock edge; tell `passed` of each transfer."""
        while True:
            await RisingEdge(self.dut.clk)
            for channel in channels:
                payload = channel.look()
                if payload is not None:
                    passed(channel.name, payload)

    async def read(self, name: str) -> int:
        """A register's value."""
        return int(await self.bus.read_dword(regs.register(name).offset))

    async def write(self, name: str, value: int) -> None:
        """Set a register."""
        await self.bus.write_dword(regs.register(name).offset, value)

    async def start(
        self, instructions: Sequence[isa.Instruction | bytes], watchdog: int = 20_000, limit: int = MEMORY_WORDS
    ) -> None:
        """Write a program to memory and start it; it may address `limit` words."""
        setup = RunSetup(
            memory_base=MEMORY_BASE,
            memory_words=limit,
            program_word=PROGRAM_WORD,
            instructions=len(instructions),
            watchdog=watchdog,
            image={PROGRAM_WORD * self.word: _image(instructions)},
        )
        await self.write("IRQ_STATUS", regs.pack("IRQ_STATUS", done=1, error=1))
        base = MEMORY_BASE % (1 << self.params.axi_addr_bits)
        self.rules.window = range(base, base + limit * self.word)
        await load_program(self, self.ram, setup)
        await start_program(self)

    async def finish(self, cycles: int = 100_000) -> dict[str, int]:
        """Wait for the interrupt; the status fields."""
        if not int(self.dut.irq.value):
            interrupt = RisingEdge(self.dut.irq)
            came = await First(interrupt, ClockCycles(self.dut.clk, cycles))
            assert came is interrupt, f"no interrupt within {cycles} cycles; status {await self.read('STATUS'):#x}"
        return await read_status(self)

    async def run(self, instructions: Sequence[isa.Instruction | bytes], **options: int) -> dict[str, int]:
        """Start a program and wait for its interrupt; the status fields."""
        await self.start(instructions, **options)
        return await self.finish()

    async def reset(self) -> None:
        """The soft reset, waited for."""
        await self.write("CONTROL", regs.pack("CONTROL", reset=1))
        for _ in range(200):
            if not (await read_status(self))["busy"]:
                return
        raise AssertionError("the soft reset must end")

    async def reset_input(self) -> None:
        """Reset everything that sees the reset input."""
        self.dut.rst.value = 1
        self.rules.forget()
        await ClockCycles(self.dut.clk, 3)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 2)

    def isolate(self, reads: int, writes: int) -> Callable[[], tuple[int, int]]:
        """Model of a bus isolator: drop the answers to that many bursts; returns how many have been dropped."""
        owed = {"r": reads, "b": writes}
        sides = {"r": (self.ram.read_if.r_channel, "rlast"), "b": (self.ram.write_if.b_channel, "")}

        def drops(name: str, item: Any) -> bool:
            last = sides[name][1]
            dropped = owed[name] > 0
            owed[name] -= dropped and (not last or bool(int(getattr(item, last))))
            return dropped

        for name, (channel, _) in sides.items():
            put = channel.queue.put

            async def filtered(item: Any, name: str = name, put: Any = put) -> None:
                if not drops(name, item):
                    await put(item)

            waiting = [channel.queue.get_nowait() for _ in range(channel.queue.qsize())]
            for item in waiting:
                if not drops(name, item):
                    channel.queue.put_nowait(item)
            # Senders that waited for space go on, and their answers are dropped too.
            channel.queue.put = filtered
            channel.dequeue_event.set()
        return lambda: (reads - owed["r"], writes - owed["b"])

    async def rest(self) -> None:
        """Status must say soon that the bus has come to rest, and from then on nothing may be offered."""
        for _ in range(200):
            if not (await read_status(self))["busy"]:
                break
        else:
            raise AssertionError("the bus must come to rest")
        for _ in range(20):
            await ClockCycles(self.dut.clk, 1)
            for name in ("arvalid", "awvalid", "wvalid"):
                assert not int(getattr(self.dut, f"m_axi_{name}").value), f"{name} in rest"

    def begin_instruction(self) -> isa.Instruction:
        """The BEGIN that this hardware accepts."""
        return isa.make("BEGIN", version=isa.ISA_VERSION, fingerprint=self.params.fingerprint())


def _image(instructions: Sequence[isa.Instruction | bytes]) -> bytes:
    """A program as it lies in memory; bytes stand for instructions that no encoder makes."""
    return add_check(i if isinstance(i, bytes) else isa.encode(i) for i in instructions)
