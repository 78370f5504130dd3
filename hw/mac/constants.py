"""The constants' loader: tables, residual constants and channel parameters, taken apart beside the stream of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.mac.weights import CONSTANTS_REQUEST
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import TABLE_BYTES, HardwareParams

_DEPTH = 8
_RESIDUAL_BYTES = 16


class Piece(IntEnum):
    """What the bytes now being taken apart are."""

    NONE = 0
    TABLE = 1
    RESIDUAL = 2
    CHANNEL = 3


WRITE = data.StructLayout({"piece": Piece, "index": 8, "word": 32, "byte": 8})
"""A table byte (`byte` at `index`), or a 32-bit `word`: residual word 0 to 3, or channel word 0 to 2*cols - 1."""


class ConstantsLoader(wiring.Component):
    """Reads a block's constants, a word at a time through a short queue, and hands them out a piece a cycle.

    Members
    -------
    requests:
        One for every output block.
    read_valid, read_address, read_data:
        Reads of the weight memory; never refused.
    table_free, residual_free, channels_free:
        The set that would be written next is no longer in use; looked at two cycles before a piece.
    write:
        A piece to store, in cycles in which its `piece` is not NONE.
    done:
        The block's last piece was handed out.
    """

    LATENCY = 1 + WEIGHT_LATENCY + CreditFifo.LATENCY + SkidBuffer.LATENCY + 1
    """Cycles from a request taken to its first piece, when reads are allowed and sets are free."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "requests": In(stream.Signature(CONSTANTS_REQUEST)),
                "read_valid": Out(1),
                "read_address": Out(SCRATCH_BITS),
                "read_data": In(8 * params.word_bytes),
                "read_allowed": In(1),
                "table_free": In(1),
                "residual_free": In(1),
                "channels_free": In(1),
                "write": Out(WRITE),
                "done": Out(1),
            }
        )

    @staticmethod
    def model(
        request: Mapping[str, int], read: Callable[[int], bytes], params: HardwareParams
    ) -> Iterator[tuple[Piece, int, int]]:
        """The pieces of a request in order, each with its index and value; `read` gives an address's word."""
        pieces = (
            (Piece.TABLE, request["load_table"], params.table_words, 1, TABLE_BYTES),
            (Piece.RESIDUAL, request["load_residual"], params.residual_words, 4, _RESIDUAL_BYTES // 4),
            (Piece.CHANNEL, 1, params.channel_words, 4, 2 * params.cols),
        )
        at = request["address"]
        for piece, present, words, size, count in pieces:
            if present:
                raw = b"".join(read((at + word) % (1 << SCRATCH_BITS)) for word in range(words))
                for index in range(count):
                    yield piece, index, int.from_bytes(raw[index * size : (index + 1) * size], "little")
                at += words

    def elaborate(self, platform: object) -> Module:
        """A reader that keeps the queue full and an unpacker that empties it."""
        m = Module()
        m.submodules.words = words = CreditFifo(8 * self._params.word_bytes, _DEPTH)
        piece = Signal(Piece)
        remaining = Signal(
            range(self._params.table_words + self._params.residual_words + self._params.channel_words + 1)
        )
        # That some remain: their number takes a while to look at.
        more = Signal()
        pending = Signal(data.StructLayout({"table": 1, "residual": 1}))
        m.d.comb += self.requests.ready.eq(piece == Piece.NONE)
        with m.If(self.requests.valid & self.requests.ready):
            request = self.requests.payload
            table = Mux(request.load_table, self._params.table_words, 0)
            residual = Mux(request.load_residual, self._params.residual_words, 0)
            m.d.sync += [
                piece.eq(
                    Mux(request.load_table, Piece.TABLE, Mux(request.load_residual, Piece.RESIDUAL, Piece.CHANNEL))
                ),
                pending.residual.eq(request.load_residual),
                remaining.eq(table + residual + self._params.channel_words),
                more.eq(1),
                self.read_address.eq(request.address),
            ]
        self._read(m, words, remaining, more)
        m.submodules.head = head = SkidBuffer(8 * self._params.word_bytes)
        wiring.connect(m, words.o, head.i)
        self._unpack(m, head.o, piece, pending)
        return m

    def _read(self, m: Module, words: CreditFifo, remaining: Signal, more: Signal) -> None:
        """Ask for a word whenever the queue will have room for it."""
        m.d.comb += [
            self.read_valid.eq(more & words.credit_available & self.read_allowed),
            words.take_credit.eq(self.read_valid),
            words.push.eq(pipeline_stages(m, "arriving", self.read_valid, WEIGHT_LATENCY, reset_less=False)),
            words.word.eq(self.read_data),
        ]
        with m.If(self.read_valid):
            m.d.sync += [remaining.eq(remaining - 1), more.eq(remaining != 1)]
            m.d.sync += self.read_address.eq(self.read_address + 1)

    def _unpack(self, m: Module, words: stream.Interface, piece: Signal, pending: data.View[data.StructLayout]) -> None:
        """Walk over the word at the queue's head by byte (table) or by 32 bits; drop it at its end.

        That a step is the word's last, or the piece's, is known a step before.
        """
        quarters = self._params.word_bytes // 4
        step = Signal(range(self._params.word_bytes))
        index = Signal(range(max(TABLE_BYTES, 2 * self._params.cols)))
        ready, free, moving, is_table = Signal(), Signal(), Signal(), Signal()
        last_step, last_index, before_last = Signal(), Signal(), Signal()
        counts = {Piece.TABLE: TABLE_BYTES, Piece.RESIDUAL: _RESIDUAL_BYTES // 4, Piece.CHANNEL: 2 * self._params.cols}
        sets = {Piece.TABLE: self.table_free, Piece.RESIDUAL: self.residual_free, Piece.CHANNEL: self.channels_free}
        with m.Switch(piece):
            for kind, count in counts.items():
                with m.Case(kind):
                    m.d.comb += [ready.eq(sets[kind]), before_last.eq(index == count - 2)]
        quarter = step >> 2
        word = words.payload.word_select(quarter, 32) if quarters > 1 else words.payload
        leaves = last_step | last_index | (~is_table & (quarters == 1))
        m.d.comb += [
            is_table.eq(piece == Piece.TABLE),
            moving.eq(words.valid & free),
            words.ready.eq(free & leaves),
        ]
        write = Signal(WRITE, reset_less=True)
        moved = Signal(Piece)
        m.d.comb += [self.write.eq(write), self.write.piece.eq(moved)]
        m.d.sync += [
            moved.eq(Mux(moving, piece, Piece.NONE)),
            write.word.eq(word),
            write.byte.eq(word.word_select(step[:2], 8)),
            write.index.eq(index),
            self.done.eq(moving & last_index & (piece == Piece.CHANNEL)),
        ]
        # Seen a cycle before, and not of the piece before.
        m.d.sync += free.eq(ready & ~(moving & last_index))
        with m.If(moving):
            m.d.sync += [index.eq(index + 1), last_index.eq(before_last & ~last_index)]
            m.d.sync += step.eq(step + Mux(is_table, 1, 4))
            m.d.sync += last_step.eq(Mux(is_table, step == self._params.word_bytes - 2, quarter == quarters - 2))
            with m.If(leaves):
                m.d.sync += [step.eq(0), last_step.eq(0)]
            with m.If(last_index):
                m.d.sync += index.eq(0)
                self._next_piece(m, piece, pending)

    def _next_piece(self, m: Module, piece: Signal, pending: data.View[data.StructLayout]) -> None:
        with m.Switch(piece):
            with m.Case(Piece.TABLE):
                m.d.sync += piece.eq(Mux(pending.residual, Piece.RESIDUAL, Piece.CHANNEL))
            with m.Case(Piece.RESIDUAL):
                m.d.sync += piece.eq(Piece.CHANNEL)
            with m.Case(Piece.CHANNEL):
                m.d.sync += piece.eq(Piece.NONE)
