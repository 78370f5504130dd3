"""The constants' loader: tables, residual constants and channel parameters, taken apart beside the stream of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.mac.weights import CONSTANTS_REQUEST
from hw.ports import READ_LATENCY
from hw.spec.isa import SCRATCH_BITS
from hw.spec.params import TABLE_BYTES, HardwareParams

_DEPTH = 8
_QUEUE_LATENCY = 2
"""Cycles from a word's way into the queue to its way out."""
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
        The set that would be written next is no longer in use.
    write:
        A piece to store, in cycles in which its `piece` is not NONE.
    done:
        The block's last piece was handed out.
    """

    LATENCY = 1 + READ_LATENCY + _QUEUE_LATENCY
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
        m.submodules.words = words = SyncFIFOBuffered(width=8 * self._params.word_bytes, depth=_DEPTH)
        piece = Signal(Piece)
        remaining = Signal(
            range(self._params.table_words + self._params.residual_words + self._params.channel_words + 1)
        )
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
                self.read_address.eq(request.address),
            ]
        self._read(m, words, remaining)
        self._unpack(m, words, piece, pending)
        return m

    def _read(self, m: Module, words: SyncFIFOBuffered, remaining: Signal) -> None:
        """Ask for a word whenever the queue will have room for it."""
        owed = Signal(range(_DEPTH + 1))
        arriving = self.read_valid
        for number in range(READ_LATENCY):
            after = Signal(name=f"arriving{number + 1}")
            m.d.sync += after.eq(arriving)
            arriving = after
        m.d.comb += [
            self.read_valid.eq((remaining != 0) & (owed != _DEPTH) & self.read_allowed),
            words.w_en.eq(arriving),
            words.w_data.eq(self.read_data),
        ]
        m.d.sync += owed.eq(owed + self.read_valid - (words.r_en & words.r_rdy))
        with m.If(self.read_valid):
            m.d.sync += [remaining.eq(remaining - 1), self.read_address.eq(self.read_address + 1)]

    def _unpack(self, m: Module, words: SyncFIFOBuffered, piece: Signal, pending: data.View[data.StructLayout]) -> None:
        """Walk over the word at the queue's head by byte (table) or by 32 bits; drop it at its end."""
        step = Signal(range(self._params.word_bytes))
        index = Signal(range(max(TABLE_BYTES, 2 * self._params.cols)))
        free, moving = Signal(), Signal()
        is_table = piece == Piece.TABLE
        last_step, last_index = Signal(), Signal()
        with m.Switch(piece):
            with m.Case(Piece.TABLE):
                m.d.comb += [free.eq(self.table_free), last_index.eq(index == TABLE_BYTES - 1)]
            with m.Case(Piece.RESIDUAL):
                m.d.comb += [free.eq(self.residual_free), last_index.eq(index == _RESIDUAL_BYTES // 4 - 1)]
            with m.Case(Piece.CHANNEL):
                m.d.comb += [free.eq(self.channels_free), last_index.eq(index == 2 * self._params.cols - 1)]
        quarter = step >> 2
        word = words.r_data.word_select(quarter, 32) if self._params.word_bytes > 4 else words.r_data
        increment = Mux(is_table, 1, 4)
        m.d.comb += [
            moving.eq(words.r_rdy & free),
            last_step.eq(
                Mux(is_table, step == self._params.word_bytes - 1, quarter == self._params.word_bytes // 4 - 1)
            ),
            words.r_en.eq(moving & (last_step | last_index)),
            self.write.word.eq(word),
            self.write.byte.eq(word.word_select(step[:2], 8)),
            self.write.index.eq(index),
        ]
        with m.If(moving):
            m.d.comb += self.write.piece.eq(piece)
            m.d.sync += [index.eq(index + 1), step.eq(step + increment)]
            with m.If(last_step | last_index):
                m.d.sync += step.eq(0)
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
                m.d.comb += self.done.eq(1)
