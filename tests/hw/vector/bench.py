"""A bench for the vector unit: a scratchpad that obeys the port contracts, refuses at random and checks requests."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from amaranth.hdl import Cat, Elaboratable, ResetInserter, Signal

from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.isa import Instruction, encode
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Stall
from intloom.hw.vector.unit import VectorUnit
from tests.hw.streams import made, run, set_together

_TIMEOUT = 20000
"""Cycles for a program on a unit that works on whole words; others may take as many for each slice of a word."""


@dataclass
class Outcome:
    """What happened."""

    words: list[bytes]
    started: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})
    busy: int = 0
    stalled: int = 0
    cycles: int = 0
    fault: tuple[int, int] | None = None
    idle: bool = False


@dataclass
class _Port:
    """Watches that a request holds until it is granted."""

    waiting: tuple[int, ...] | None = None

    def check(self, valid: int, request: tuple[int, ...], ready: bool, name: str) -> None:
        if self.waiting is not None:
            assert valid and request == self.waiting, f"port {name} dropped or changed a request"
        self.waiting = request if valid and not ready else None


def _resettable(params: HardwareParams) -> tuple[VectorUnit, Signal, Elaboratable]:
    """A unit, a soft reset, and the unit with that reset."""
    unit, reset = VectorUnit(params), Signal()
    return unit, reset, ResetInserter(reset)(unit)


class Bench:
    """Runs instructions on a vector unit.

    `grant` is the chance that a port is ready in a cycle, `write_grant` that of the write port if it differs; `offer`
    the chance that an instruction is there.
    """

    def __init__(
        self,
        params: HardwareParams,
        words: Sequence[bytes],
        rng: random.Random,
        grant: float = 1.0,
        offer: float = 1.0,
        write_grant: float | None = None,
    ) -> None:
        self.params = params
        self.rng = rng
        self.grant = {"a": grant, "b": grant, "out": grant if write_grant is None else write_grant}
        self.offer = offer
        self.outcome = Outcome(list(words))
        self._due: list[tuple[int, str, bytes]] = []
        self._ports = {name: _Port() for name in ("a", "b", "out")}
        self._wrote: int | None = None
        """The cycle of the first write."""

    def run(
        self,
        instructions: Sequence[Instruction],
        halt_at: int | None = None,
        settle: int = 40,
        reset_at: int | None = None,
        reset_after_write: int | None = None,
    ) -> Outcome:
        """Run until all are done or a fault is raised, then `settle` cycles more.

        After a soft reset, in a cycle or some cycles after the first write, the instructions run from the first one on.
        """
        dut, reset, resettable = made(_resettable, self.params)
        ports = [getattr(dut, name) for name in self._ports]
        control = (reset, dut.unit.valid, dut.unit.halt, dut.unit.instruction, dut.unit.index)
        inputs = Cat(*control, dut.a.data, dut.b.data, *(port.ready for port in ports))
        faults = Cat(port.fault for port in ports)

        async def bench(ctx):
            nonlocal reset_at
            encoded = [int.from_bytes(encode(i), "little") for i in instructions]
            left = list(encoded)
            total, after, offered = len(left), 0, False
            while after < settle:
                cycle = self.outcome.cycles
                if reset_at is None and reset_after_write is not None and self._wrote is not None:
                    reset_at = self._wrote + 1 + reset_after_write
                if reset_at is not None and cycle == reset_at + 1:
                    left, offered = list(encoded), False
                    self._forget()
                assert cycle < _TIMEOUT * self.params.vector_slices, f"{len(self.outcome.done)} of {total} done"
                offered = bool(left) and (offered or self.rng.random() < self.offer)
                halt = halt_at is not None and cycle >= halt_at
                control = [cycle == reset_at, offered, halt, left[0] if left else 0, 100 + total - len(left)]
                ready = {name: self.rng.random() < self.grant[name] for name in self._ports}
                set_together(ctx, inputs, [*control, *self._data(cycle), *ready.values()])
                self._memory(ctx, dut, ready, faults)
                if offered and ctx.get(dut.unit.ready):
                    left.pop(0)
                    offered = False
                self._events(ctx, dut, cycle)
                over = len(self.outcome.done) == total or self.outcome.fault is not None
                after += over or (halt_at is not None and cycle > halt_at)
                self.outcome.cycles += 1
                await ctx.tick()

        never = reset_at is None and reset_after_write is None
        run(dut if never else resettable, bench)
        return self.outcome

    def _forget(self) -> None:
        """Requests, reads in flight and events before a soft reset; writes remain."""
        self._due = []
        self._ports = {name: _Port() for name in self._ports}
        self.outcome = Outcome(self.outcome.words, cycles=self.outcome.cycles)

    def _data(self, cycle: int) -> list[int]:
        """What the read ports show: a word that is due, or anything."""
        due = {name: int.from_bytes(word, "little") for at, name, word in self._due if at == cycle}
        self._due = [d for d in self._due if d[0] > cycle]
        return [due.get(name, self.rng.getrandbits(8 * self.params.word_bytes)) for name in ("a", "b")]

    def _memory(self, ctx, dut: VectorUnit, ready: dict[str, bool], faults: Cat) -> None:
        """Answer and write what is granted, as the scratchpad would."""
        words, ports = self.outcome.words, {name: getattr(dut, name) for name in ready}
        valid = {name: ctx.get(port.valid) for name, port in ports.items()}
        requests = {name: ctx.get(port.addr) for name, port in ports.items()}
        set_together(ctx, faults, [valid[name] and requests[name] >= len(words) for name in ports])
        for name in ("a", "b"):
            self._ports[name].check(valid[name], (requests[name],), ready[name], name)
            if valid[name] and ready[name]:
                self.outcome.reads[name] += 1
                if requests[name] < len(words):
                    self._due.append((self.outcome.cycles + READ_LATENCY, name, words[requests[name]]))
        self._store(ctx, dut, requests["out"], ready["out"])

    def _store(self, ctx, dut: VectorUnit, addr: int, ready: bool) -> None:
        valid, mask = ctx.get(dut.out.valid), ctx.get(dut.out.mask)
        data = ctx.get(dut.out.data)
        self._ports["out"].check(valid, (addr, data, mask), ready, "out")
        if valid and ready and addr < len(self.outcome.words):
            self._wrote = self.outcome.cycles if self._wrote is None else self._wrote
            new = data.to_bytes(self.params.word_bytes, "little")
            old = self.outcome.words[addr]
            self.outcome.words[addr] = bytes(
                n if mask >> k & 1 else o for k, (n, o) in enumerate(zip(new, old, strict=True))
            )

    def _events(self, ctx, dut: VectorUnit, cycle: int) -> None:
        outcome, unit = self.outcome, dut.unit
        if ctx.get(unit.started):
            outcome.started.append(cycle)
        if ctx.get(unit.done):
            outcome.done.append(cycle)
        busy, stall = ctx.get(unit.busy), ctx.get(unit.stall)
        outcome.busy += busy
        outcome.stalled += stall == 1 << Stall.MEMORY
        assert stall in (0, 1 << Stall.MEMORY) and not (busy and stall)
        assert len(outcome.done) <= len(outcome.started)
        outcome.idle = bool(ctx.get(unit.idle))
        waiting = [name for name in self._ports if ctx.get(getattr(dut, name).valid)]
        assert not (outcome.idle and waiting), f"idle, and requests of ports {waiting} wait"
        if ctx.get(unit.fault):
            seen = (ctx.get(unit.cause), ctx.get(unit.fault_index))
            assert outcome.fault in (None, seen), "a fault must hold"
            outcome.fault = seen
        else:
            assert outcome.fault is None, "a fault must hold"
