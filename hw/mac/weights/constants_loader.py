"""Constants loader: reads tables, residual constants and channel parameters and unpacks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.mac.weights.fetcher import CONSTANTS_REQUEST
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.formats import RESIDUAL_BYTES, TABLE_BYTES
from intloom.hw.spec.isa import WEIGHT_ADDRESS_BITS
from intloom.hw.spec.params import HardwareParams

# WEIGHT_LATENCY + CreditFifo.TURNAROUND: one word a cycle.
_DEPTH = 8


class ConstantKind(IntEnum):
    """Kind of constant being unpacked."""

    NONE = 0
    TABLE = 1
    RESIDUAL = 2
    CHANNEL = 3


CONSTANT_WRITE = data.StructLayout({"kind": ConstantKind, "index": 8, "word": 32, "byte": 8})
"""A table byte (`byte` at `index`), or a 32-bit `word`: residual word 0 to 3, channel word 0 to 2*cols - 1."""


class ConstantsLoader(wiring.Component):
    """Reads a block's constants word by word through a short FIFO and writes one element a cycle.

    Members
    -------
    requests:
        One per output block.
    read_valid, read_address, read_data:
        Reads of the weight memory; granted in the same cycle.
    read_allowed:
        Reads are allowed in this cycle.
    table_free, residual_free, channels_free:
        The set that would be written next is not in use; sampled two cycles before an element.
    write:
        An element to store, in cycles in which its `kind` is not NONE.
    done:
        Pulse: the block's last element is written.

    Handshake
    ---------
    `requests` is a stream, taken while nothing is being unpacked. `write` has no back-pressure: a low `*_free` stops
    unpacking instead.

    Timing
    ------
    One element a cycle: a table byte or a 32-bit word. From a request taken to its first element: `LATENCY` = 10
    cycles, if reads are allowed and sets are free. `done` comes with the last element.

    Requirements
    ------------
    A set reported free stays free until its last element is written. Data comes `WEIGHT_LATENCY` cycles after the read.

    Reset and faults
    ----------------
    Soft reset drops the request and empties the FIFO. Addresses wrap, so there are no faults.
    """

    LATENCY = 1 + WEIGHT_LATENCY + CreditFifo.LATENCY + 2
    """Cycles from a request taken to its first element, if reads are allowed and sets are free."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "requests": In(stream.Signature(CONSTANTS_REQUEST)),
                "read_valid": Out(1),
                "read_address": Out(WEIGHT_ADDRESS_BITS),
                "read_data": In(8 * params.word_bytes),
                "read_allowed": In(1),
                "table_free": In(1),
                "residual_free": In(1),
                "channels_free": In(1),
                "write": Out(CONSTANT_WRITE),
                "done": Out(1),
            }
        )

    @staticmethod
    def model(
        request: Mapping[str, int], read: Callable[[int], bytes], params: HardwareParams
    ) -> Iterator[tuple[ConstantKind, int, int]]:
        """The elements of a request in order: kind, index, value; `read` returns the word at an address."""
        groups = (
            (ConstantKind.TABLE, request["load_table"], params.table_words, 1, TABLE_BYTES),
            (ConstantKind.RESIDUAL, request["load_residual"], params.residual_words, 4, RESIDUAL_BYTES // 4),
            (ConstantKind.CHANNEL, 1, params.channel_words, 4, 2 * params.cols),
        )
        at = request["address"]
        for kind, present, words, size, count in groups:
            if present:
                raw = b"".join(read((at + word) % (1 << WEIGHT_ADDRESS_BITS)) for word in range(words))
                for index in range(count):
                    yield kind, index, int.from_bytes(raw[index * size : (index + 1) * size], "little")
                at += words

    def elaborate(self, platform: object) -> Module:
        """A reader that fills the FIFO and an unpacker that empties it."""
        m = Module()
        m.submodules.words = words = CreditFifo(8 * self._params.word_bytes, _DEPTH)
        kind = Signal(ConstantKind)
        remaining = Signal(
            range(self._params.table_words + self._params.residual_words + self._params.channel_words + 1)
        )
        # Registered terminal count: `remaining != 0` would be on the read request's path.
        reading = Signal()
        pending = Signal(data.StructLayout({"table": 1, "residual": 1}))
        m.d.comb += self.requests.ready.eq(kind == ConstantKind.NONE)
        with m.If(self.requests.valid & self.requests.ready):
            request = self.requests.payload
            table = Mux(request.load_table, self._params.table_words, 0)
            residual = Mux(request.load_residual, self._params.residual_words, 0)
            m.d.sync += [
                kind.eq(
                    Mux(
                        request.load_table,
                        ConstantKind.TABLE,
                        Mux(request.load_residual, ConstantKind.RESIDUAL, ConstantKind.CHANNEL),
                    )
                ),
                pending.residual.eq(request.load_residual),
                remaining.eq(table + residual + self._params.channel_words),
                reading.eq(1),
                self.read_address.eq(request.address),
            ]
        self._read(m, words, remaining, reading)
        # A register between the FIFO's distributed RAM and the selection of an element.
        head = stream.Signature(8 * self._params.word_bytes).create(path=("head",))
        word, valid = Signal.like(head.payload, reset_less=True), Signal()
        m.d.comb += [head.payload.eq(word), head.valid.eq(valid), words.o.ready.eq(~valid | head.ready)]
        with m.If(words.o.ready):
            m.d.sync += [valid.eq(words.o.valid), word.eq(words.o.payload)]
        self._unpack(m, head, kind, pending)
        return m

    def _read(self, m: Module, words: CreditFifo, remaining: Signal, reading: Signal) -> None:
        """Read a word whenever the FIFO has a credit for it."""
        m.d.comb += [
            self.read_valid.eq(reading & words.credit_available & self.read_allowed),
            words.take_credit.eq(self.read_valid),
            words.push.eq(pipeline_stages(m, "arriving", self.read_valid, WEIGHT_LATENCY, reset_less=False)),
            words.word.eq(self.read_data),
        ]
        with m.If(self.read_valid):
            m.d.sync += [remaining.eq(remaining - 1), reading.eq(remaining != 1)]
            m.d.sync += self.read_address.eq(self.read_address + 1)

    def _unpack(self, m: Module, words: stream.Interface, kind: Signal, pending: data.View[data.StructLayout]) -> None:
        """Step over the word at the FIFO's head by byte (table) or by 32 bits, and pop it at its end.

        Terminal counts of word and kind are registered one step ahead.
        """
        quarters = self._params.word_bytes // 4
        step = Signal(range(self._params.word_bytes))
        index = Signal(range(max(TABLE_BYTES, 2 * self._params.cols)))
        ready, free, fire, is_table = Signal(), Signal(), Signal(), Signal()
        last_step, last_index, before_last = Signal(), Signal(), Signal()
        counts = {
            ConstantKind.TABLE: TABLE_BYTES,
            ConstantKind.RESIDUAL: RESIDUAL_BYTES // 4,
            ConstantKind.CHANNEL: 2 * self._params.cols,
        }
        sets = {
            ConstantKind.TABLE: self.table_free,
            ConstantKind.RESIDUAL: self.residual_free,
            ConstantKind.CHANNEL: self.channels_free,
        }
        with m.Switch(kind):
            for case, count in counts.items():
                with m.Case(case):
                    m.d.comb += [ready.eq(sets[case]), before_last.eq(index == count - 2)]
        quarter = step >> 2
        word = words.payload.word_select(quarter, 32) if quarters > 1 else words.payload
        pop = last_step | last_index | (~is_table & (quarters == 1))
        m.d.comb += [
            is_table.eq(kind == ConstantKind.TABLE),
            fire.eq(words.valid & free),
            words.ready.eq(free & pop),
        ]
        write = Signal(CONSTANT_WRITE, reset_less=True)
        fire_kind = Signal(ConstantKind)
        m.d.comb += [self.write.eq(write), self.write.kind.eq(fire_kind)]
        m.d.sync += [
            fire_kind.eq(Mux(fire, kind, ConstantKind.NONE)),
            write.word.eq(word),
            write.byte.eq(word.word_select(step[:2], 8)),
            write.index.eq(index),
            self.done.eq(fire & last_index & (kind == ConstantKind.CHANNEL)),
        ]
        # Registered for timing; masked in the cycle in which the kind changes, because it describes the old kind.
        m.d.sync += free.eq(ready & ~(fire & last_index))
        with m.If(fire):
            m.d.sync += [index.eq(index + 1), last_index.eq(before_last & ~last_index)]
            m.d.sync += step.eq(step + Mux(is_table, 1, 4))
            m.d.sync += last_step.eq(Mux(is_table, step == self._params.word_bytes - 2, quarter == quarters - 2))
            with m.If(pop):
                m.d.sync += [step.eq(0), last_step.eq(0)]
            with m.If(last_index):
                m.d.sync += index.eq(0)
                self._next_kind(m, kind, pending)

    def _next_kind(self, m: Module, kind: Signal, pending: data.View[data.StructLayout]) -> None:
        with m.Switch(kind):
            with m.Case(ConstantKind.TABLE):
                m.d.sync += kind.eq(Mux(pending.residual, ConstantKind.RESIDUAL, ConstantKind.CHANNEL))
            with m.Case(ConstantKind.RESIDUAL):
                m.d.sync += kind.eq(ConstantKind.CHANNEL)
            with m.Case(ConstantKind.CHANNEL):
                m.d.sync += kind.eq(ConstantKind.NONE)
