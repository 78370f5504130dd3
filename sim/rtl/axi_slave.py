"""The AXI slave model of the detailed bench: cocotbext-axi's slave with latency, bandwidth, stalls and errors.

cocotbext-axi's slave responds without latency and knows one error response. The classes here add a memory with an
injected error, and channels that delay responses and limit the bandwidth. So the timing is that of the fast bench's
memory.
"""

from __future__ import annotations

import itertools
import math
import mmap
import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, Event
from cocotbext.axi import AxiBus, AxiResp, AxiSlave

from intloom.sim.rtl.job import Direction, Job
from intloom.sim.rtl.write_log import Writer, pack_write

_LONG_STALL = 40
"""Length of the rare long stalls, in cycles: a `valid` that waits for `ready` would hang."""
Count = Callable[[], int]
"""Returns the number of the present cycle."""


class MappedMemory:
    """The mapped file as the slave's target.

    Parameters
    ----------
    store
        The file.
    job
        The run: base address, word size and the injected error.
    """

    def __init__(self, store: mmap.mmap, job: Job) -> None:
        self._store = store
        self._base = job.first_byte
        self._end = self._base + job.memory_bytes
        self._word_bytes = job.word_bytes
        self._injected = job.memory.error
        self._errors = dict.fromkeys(Direction, AxiResp.OKAY)

    def response_to(self, address: int, length: int, direction: Direction) -> AxiResp:
        """The response to an access: DECERR outside the memory, the injected error at its word."""
        if not self._base <= address <= self._end - length:
            return AxiResp.DECERR
        injected = self._injected
        if injected is None or not injected.direction & direction:
            return AxiResp.OKAY
        word = (address - self._base) // self._word_bytes
        return AxiResp(injected.response) if word == injected.word else AxiResp.OKAY

    async def read(self, address: int, length: int) -> bytes:
        """The bytes at `address`; raises for an error, which the slave answers with SLVERR."""
        self._raise_error(address, length, Direction.READ)
        return self._store[address - self._base : address - self._base + length]

    async def write(self, address: int, data: bytes) -> None:
        """Store `data`; raises for an error, which the slave answers with SLVERR."""
        self._raise_error(address, len(data), Direction.WRITE)
        self._store[address - self._base : address - self._base + len(data)] = data

    def _raise_error(self, address: int, length: int, direction: Direction) -> None:
        response = self.response_to(address, length, direction)
        # cocotbext-axi answers every exception with SLVERR, so the response is kept for `correct`.
        if response != AxiResp.OKAY:
            self._errors[direction] = max(self._errors[direction], response)
            raise PermissionError(f"{direction.name} at {address:#x}")

    def take_error(self, direction: Direction) -> AxiResp:
        """The worst response since the last call, for the item that the slave sends next."""
        # AXI numbers DECERR above SLVERR, so the maximum is the worst.
        worst, self._errors[direction] = self._errors[direction], AxiResp.OKAY
        return worst


class BandwidthLimiter:
    """Limits the beats per cycle of reads and writes together, first come first served; 0 is no limit."""

    def __init__(self, clock: Any, count: Count, bandwidth: float) -> None:
        self._clock = clock
        self._count = count
        self._bandwidth = bandwidth
        self._free = 0.0

    async def take(self) -> None:
        """Wait for the next beat."""
        if not self._bandwidth:
            return
        now = self._count()
        at = max(float(now), self._free)
        self._free = at + 1 / self._bandwidth
        if (wait := math.ceil(at) - now) > 0:
            await ClockCycles(self._clock, wait)


class ResponseDelay:
    """A response channel with latency: each burst leaves a fixed number of cycles after it was sent, in order.

    Parameters
    ----------
    channel
        The slave's channel.
    model
        The memory: its settings, cycles and errors.
    direction
        Whether it answers reads or writes.
    pace
        The bandwidth limit, for channels with data.
    """

    def __init__(
        self, channel: Any, model: AxiSlaveModel, direction: Direction, pace: BandwidthLimiter | None = None
    ) -> None:
        memory, self._reads = model.job.memory, direction is Direction.READ
        self._channel, self._model, self._direction, self._pace = channel, model, direction, pace
        self._latency = memory.read_latency if self._reads else memory.write_latency
        self._depth = memory.outstanding
        self._waiting: Queue[tuple[int, Any]] = Queue()
        self._bursts = 0
        self._opens = True
        self._due = 0
        self._space = Event()
        cocotb.start_soon(self._move())

    def _is_last(self, item: Any) -> bool:
        return bool(item.rlast) if self._reads else True

    def _correct(self, item: Any) -> None:
        """Set the response of an item whose access had an error."""
        field = "rresp" if self._reads else "bresp"
        if getattr(item, field) != AxiResp.OKAY:
            setattr(item, field, self._model.memory.take_error(self._direction))

    def __getattr__(self, name: str) -> Any:
        """Every other attribute is the channel's."""
        return getattr(self._channel, name)

    async def send(self, item: Any) -> None:
        """Take an item from the slave."""
        if self._opens:
            while self._bursts >= self._depth:
                self._space.clear()
                await self._space.wait()
            self._bursts += 1
            self._due = self._model.count() + self._latency
        self._opens = self._is_last(item)
        self._correct(item)
        self._waiting.put_nowait((self._due, item))

    async def _move(self) -> None:
        while True:
            due, item = await self._waiting.get()
            if (wait := due - self._model.count()) > 0:
                await ClockCycles(self._model.clock, wait)
            if self._pace is not None:
                await self._pace.take()
            await self._channel.send(item)
            if self._is_last(item):
                self._bursts -= 1
                self._space.set()


class WriteChannels:
    """The write address and write data channels: tracks each beat's address, limits the bandwidth, reports the beat.

    Parameters
    ----------
    slave
        cocotbext-axi's slave for writes; its channels are replaced.
    beat_bytes
        Bytes a beat.
    pace
        The bandwidth limit.
    report
        Called with address, strobe and data of every beat.
    """

    def __init__(
        self, slave: Any, beat_bytes: int, pace: BandwidthLimiter, report: Callable[[int, int, int], None]
    ) -> None:
        self._address_channel, self._data_channel = slave.aw_channel, slave.w_channel
        self._beat_bytes = beat_bytes
        self._pace = pace
        self._report = report
        self._bursts: deque[int] = deque()
        slave.aw_channel = _Receiver(self._address_channel, self._receive_address)
        slave.w_channel = _Receiver(self._data_channel, self._receive_data)

    async def _receive_address(self) -> Any:
        item = await self._address_channel.recv()
        self._bursts.append(int(item.awaddr))
        return item

    async def _receive_data(self) -> Any:
        item = await self._data_channel.recv()
        # Write beats take their bandwidth here; read beats take theirs in `ResponseDelay`.
        await self._pace.take()
        self._report(self._bursts[0], int(item.wstrb), int(item.wdata))
        self._bursts[0] += self._beat_bytes
        if int(item.wlast):
            self._bursts.popleft()
        return item


class _Receiver:
    """A channel whose `recv` is replaced."""

    def __init__(self, channel: Any, receive: Callable[[], Any]) -> None:
        self._channel = channel
        self.recv = receive

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


class AxiSlaveModel:
    """The memory at the accelerator's bus: cocotbext-axi's slave with latency, bandwidth, stalls and errors.

    Parameters
    ----------
    dut
        The accelerator.
    store
        The mapped memory file.
    job
        The run.
    count
        Number of the present cycle.
    """

    def __init__(self, dut: Any, store: mmap.mmap, job: Job, count: Count) -> None:
        self.job, self.count, self.clock = job, count, dut.clk
        self.memory = MappedMemory(store, job)
        self.writes = bytearray()
        """The write log, if the job asks for one."""
        slave = AxiSlave(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, self.memory)
        read, write = slave.read_if, slave.write_if
        self._stall((read.ar_channel, read.r_channel, write.aw_channel, write.w_channel, write.b_channel))
        pace = BandwidthLimiter(dut.clk, count, job.memory.bandwidth)
        read.r_channel = ResponseDelay(read.r_channel, self, Direction.READ, pace)
        write.b_channel = ResponseDelay(write.b_channel, self, Direction.WRITE)
        WriteChannels(write, job.beat_bytes, pace, self._record)
        self._data = self._mask = 0

    def _stall(self, channels: tuple[Any, ...]) -> None:
        permille = self.job.memory.stall_permille
        for number, channel in enumerate(channels if permille else ()):
            # Each channel has its own random sequence, so that their stalls are independent.
            channel.set_pause_generator(stalls(self.job.memory.seed * 8 + number, permille))

    def _record(self, address: int, strobe: int, data: int) -> None:
        width, beat = self.job.word_bytes, self.job.beat_bytes
        if not self.job.log_writes or self.memory.response_to(address, beat, Direction.WRITE) != AxiResp.OKAY:
            return
        lane, part = address % self.job.port_bytes, address % width
        if part == 0:
            self._data = self._mask = 0
        self._data |= (data >> 8 * lane) % (1 << 8 * beat) << 8 * part
        self._mask |= strobe >> lane << part
        if part + beat == width:
            word = (address - self.job.first_byte) // width
            written = self._data.to_bytes(width, "little")
            self.writes += pack_write(self.count(), Writer.STORE, word, self._mask, written)


def stalls(seed: int, permille: int) -> Iterator[bool]:
    """Random pauses: most of one cycle, 1 in 64 of `_LONG_STALL` cycles."""
    rng = random.Random(seed)
    while True:
        if rng.randrange(1000) < permille:
            yield from itertools.repeat(True, _LONG_STALL if rng.randrange(64) == 0 else 1)
        else:
            yield False
