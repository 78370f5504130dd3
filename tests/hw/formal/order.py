"""The contract of everything that holds words in order: nothing is lost, invented, changed or overtaken."""

from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring

from intloom.hw.bus.axi4 import LENGTH_BITS
from intloom.hw.bus.skid_buffer import SkidBuffer


def free_inputs(component: wiring.Component, *fixed: str) -> Iterator[object]:
    """Assignments that let every input do anything in every cycle, but for the members `fixed` by name."""
    for path, member, value in component.signature.flatten(component):
        if member.flow is wiring.In and str(path[0]) not in fixed:
            yield Value.cast(value).eq(AnySeq(len(Value.cast(value))))


class Free(wiring.Component):
    """A component with the ports of another one, whose outputs have any value in any cycle."""

    def __init__(self, real: wiring.Component) -> None:
        # Amaranth 0.5 warns of a component that is created and not elaborated.
        real._MustUse__silence = True
        super().__init__(dict(real.signature.members.items()))

    def elaborate(self, platform: object) -> Module:
        """Free outputs."""
        m = Module()
        for _, member, value in self.signature.flatten(self):
            if member.flow is wiring.Out:
                m.d.comb += Value.cast(value).eq(AnySeq(len(Value.cast(value))))
        return m


class FreeBench(Elaboratable):
    """A component under any inputs, but for the members `fixed` by name; with `resets`, it is reset at any time.

    What is offered to it on these streams stays on offer until it is taken.
    """

    def __init__(self, dut: wiring.Component, *fixed: str, streams: Sequence[str] = (), resets: bool = False) -> None:
        self.dut, self.fixed, self.streams, self.resets = dut, fixed, streams, resets

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        m.d.comb += [*free_inputs(self.dut, *self.fixed), Assume(self.resets | ~ResetSignal())]
        for stream in (getattr(self.dut, name) for name in self.streams):
            assume_stream_holds(m, stream.valid, stream.ready, stream.payload)
        return m


class OrderCheck:
    """Follows one word, chosen freely among all that enter, through a component that holds at most `capacity`.

    `inside` counts the words inside. `watching`, `ahead` and `chosen` say that the chosen word is inside, behind how
    many others, and what it is. A breach is remembered: looking at a run's last cycle alone tells of all before.
    """

    def __init__(self, width: int, capacity: int) -> None:
        self.width = width
        self.capacity = capacity
        self.inside = Signal(range(capacity + 2))
        self.watching = Signal()
        self.ahead = Signal(range(capacity + 2))
        self.chosen = Signal(width)
        self._broken = Signal()

    def attach(self, m: Module, enter: Value, entering: Value, leave: Value, leaving: Value) -> None:
        """Assert the contract; `enter` and `leave` say that a word passes, the others which."""
        choose = Signal()
        m.d.comb += choose.eq(AnySeq(1) & enter & ~self.watching)
        m.d.sync += self.inside.eq(self.inside + enter - leave)
        takes_chosen = self.watching & leave & (self.ahead == 0)
        breach = Signal()
        m.d.comb += breach.eq(
            (self.inside > self.capacity)
            | (leave & (self.inside == 0))
            | (takes_chosen & (leaving != self.chosen))
            | (self.watching & (self.ahead >= self.inside))
        )
        m.d.sync += self._broken.eq(self._broken | breach)
        m.d.comb += Assert(~(self._broken | breach))
        with m.If(choose):
            m.d.sync += [self.watching.eq(1), self.chosen.eq(entering), self.ahead.eq(self.inside - leave)]
        with m.Elif(self.watching & leave):
            m.d.sync += [self.ahead.eq(self.ahead - 1), self.watching.eq(self.ahead != 0)]


class BurstsInFlight:
    """Lengths of bursts in flight: from their address to their last beat."""

    CAPACITY = 4
    """More than may be in flight in each direction."""

    def __init__(self, m: Module, name: str) -> None:
        self.lengths = [Signal(LENGTH_BITS, name=f"{name}_length{n}") for n in range(self.CAPACITY)]
        self.count, self.beats = Signal(range(self.CAPACITY + 1), name=f"{name}_count"), Signal(LENGTH_BITS, name=name)
        self._m = m

    @property
    def is_last(self) -> Value:
        """The next beat is the last one of the first burst."""
        return self.beats == self.lengths[0]

    def follow(self, address: Value, length: Value, beat: Value) -> None:
        """An address passes; a beat of the first burst passes."""
        m, ends = self._m, beat & self.is_last
        m.d.sync += self.count.eq(self.count + address - ends)
        with m.If(beat):
            m.d.sync += self.beats.eq(Mux(self.is_last, 0, self.beats + 1))
        with m.If(ends):
            m.d.sync += [one.eq(following) for one, following in zip(self.lengths, self.lengths[1:], strict=False)]
        for number, one in enumerate(self.lengths):
            with m.If(address & (self.count - ends == number)):
                m.d.sync += one.eq(length)


def second_item(m: Module, buffer: SkidBuffer) -> Any:
    """The item behind the one that a skid buffer offers, if it is full; before the buffer is elaborated."""
    port = buffer.memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(~buffer.state.head)
    return port.data


def assert_stream_holds(m: Module, valid: Value, ready: Value, payload: Value) -> None:
    """A word on offer stays on offer, unchanged, until it is taken."""
    waits = Signal()
    offered = Signal.like(Value.cast(payload))
    m.d.sync += [waits.eq(valid & ~ready), offered.eq(payload)]
    m.d.comb += Assert(~waits | (valid & (Value.cast(payload) == offered)))


def assume_stream_holds(m: Module, valid: Value, ready: Value, payload: Value) -> None:
    """The sender keeps the same rule."""
    waits = Signal()
    offered = Signal.like(Value.cast(payload))
    m.d.sync += [waits.eq(valid & ~ready), offered.eq(payload)]
    m.d.comb += Assume(Mux(waits, valid & (Value.cast(payload) == offered), 1))
