"""Between the words of the accelerator and a memory port of another width."""

from collections.abc import Iterator

from amaranth.hdl import C, Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import CHANNELS, Axi4
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.spec.params import HardwareParams

Write = tuple[int, int, int]
"""Data, strobes and last flag of a beat."""
Read = tuple[int, int, int]
"""Data, response and last flag of a beat."""


class WidthConverter(wiring.Component):
    """Makes bursts of words bursts of beats, one of each for each of the other.

    A beat of a port that is narrower than a word carries a part of a word, the lowest bytes first. Because the units
    make no bursts of more than `burst_words` words, no burst must be split. A beat of a wider port carries one word,
    on the lanes of its address (a narrow transfer, AXI4 A3.4.3): no unit takes more than a word per cycle, and no byte
    outside of the word is addressed, which the window might exclude.

    Parameters
    ----------
    params
        The accelerator's parameters; port and word have different widths.

    Members
    -------
    words
        Bursts whose beats are words.
    beats
        The bursts on the port.

    Handshake
    ---------
    AXI4 on both sides. `valid` and `ready` of all channels pass in the same cycle.

    Timing
    ------
    0 cycles. On a narrower port a word of a read passes with its last beat.

    Requirements
    ------------
    Word addresses; bursts of at most `burst_words` words. Data and responses are in the order of the addresses.

    Reset and faults
    ----------------
    Reset forgets bursts in progress, so it is allowed only while none is outstanding. The response of a word is the
    worst of its beats.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        words, beats = (Axi4(params.axi_addr_bits, bits) for bits in (params.word_bits, params.axi_data_bits))
        super().__init__({"words": In(words), "beats": Out(beats)})

    @staticmethod
    def model_write(at: int, words: list[tuple[int, int]], params: HardwareParams) -> Iterator[Write]:
        """Yield the beats of a write burst to byte address `at` of words with their strobes."""
        for number, (word, strobe) in enumerate(words):
            for part in range(params.word_beats):
                first = part * params.beat_bytes
                data, mask = word >> 8 * first, strobe >> first & (1 << params.beat_bytes) - 1
                lane = (at + number * params.word_bytes + first) % params.port_bytes
                last = number == len(words) - 1 and part == params.word_beats - 1
                yield data % (1 << 8 * params.beat_bytes) << 8 * lane, mask << lane, last

    @staticmethod
    def model_read(at: int, beats: list[Read], params: HardwareParams) -> Iterator[Read]:
        """Yield the words of a read burst from byte address `at` on, with their responses, from its beats."""
        for first in range(0, len(beats), params.word_beats):
            parts = beats[first : first + params.word_beats]
            word = 0
            for part, (data, _, _) in enumerate(parts):
                lane = (at + (first + part) * params.beat_bytes) % params.port_bytes
                word |= (data >> 8 * lane) % (1 << 8 * params.beat_bytes) << 8 * part * params.beat_bytes
            yield word, max(response for _, response, _ in parts), parts[-1][2]

    def elaborate(self, platform: object) -> Module:
        """Pass the channels on; then replace what differs."""
        m = Module()
        for name, flow in CHANNELS.items():
            words, beats = getattr(self.words, name), getattr(self.beats, name)
            source, target = (words, beats) if flow is Out else (beats, words)
            m.d.comb += [target.valid.eq(source.valid), source.ready.eq(target.ready)]
            m.d.comb += [target.payload[field].eq(source.payload[field]) for field, _ in source.payload.shape()]
        if self._params.word_beats > 1:
            self._divide_words(m)
        else:
            self._select_lanes(m)
        return m

    def _divide_words(self, m: Module) -> None:
        """A narrower port: a counter of the parts of a word for each direction, and registers for all but the last."""
        parts_less_one, port_bits = self._params.word_beats - 1, self._params.axi_data_bits
        bits = parts_less_one.bit_length()
        for name in ("ar", "aw"):
            words, beats = getattr(self.words, name).payload, getattr(self.beats, name).payload
            # `word_beats * (len + 1) - 1`.
            m.d.comb += beats.len.eq(Cat(C(parts_less_one, bits), words.len))
            m.d.comb += beats.size.eq(exact_log2(self._params.port_bytes))
        words, beats = self.words.w, self.beats.w
        part, last = self._count(m, "w", bits)
        m.d.comb += [
            beats.payload.data.eq(words.payload.data.word_select(part, port_bits)),
            beats.payload.strb.eq(words.payload.strb.word_select(part, self._params.port_bytes)),
            beats.payload.last.eq(words.payload.last & last),
            words.ready.eq(beats.ready & last),
        ]
        words, beats = self.words.r, self.beats.r
        _, last = self._count(m, "r", bits)
        parts = Signal(self._params.word_bits - port_bits, reset_less=True)
        response = Signal.like(beats.payload.resp)
        # SLVERR and DECERR have bit 1 set, DECERR also bit 0 (AXI4 A3.4.4): the worst is the union of their bits.
        worst = response | beats.payload.resp
        m.d.comb += [
            words.payload.data.eq(Cat(parts, beats.payload.data)),
            words.payload.resp.eq(worst),
            words.valid.eq(beats.valid & last),
            beats.ready.eq(words.ready | ~last),
        ]
        with m.If(beats.valid & beats.ready):
            m.d.sync += [parts.eq(Cat(parts, beats.payload.data)[port_bits:]), response.eq(worst)]
            with m.If(last):
                m.d.sync += response.eq(0)

    def _count(self, m: Module, name: str, bits: int) -> tuple[Signal, Value]:
        """The part of a word that passes on a data channel, and whether it is the last one."""
        channel, part = getattr(self.beats, name), Signal(bits, name=f"{name}_part")
        with m.If(channel.valid & channel.ready):
            m.d.sync += part.eq(part + 1)
        return part, part.all()

    def _select_lanes(self, m: Module) -> None:
        """A wider port: the lanes of the first word of each outstanding burst, and those of the word that passes."""
        p = self._params
        write_lane, read_lane = self._lane(m, "aw", "w"), self._lane(m, "ar", "r")
        lanes = p.port_bytes // p.word_bytes
        words, beats = self.words.w.payload, self.beats.w.payload
        m.d.comb += [
            beats.data.eq(words.data.replicate(lanes)),
            beats.strb.eq(words.strb << (write_lane << exact_log2(p.word_bytes))),
            self.words.r.payload.data.eq(self.beats.r.payload.data.word_select(read_lane, p.word_bits)),
        ]

    def _lane(self, m: Module, address_name: str, data_name: str) -> Signal:
        """The lane of the word that passes on a data channel; words wait for the address of their burst."""
        p = self._params
        low, high = exact_log2(p.word_bytes), exact_log2(p.port_bytes)
        first = CreditFifo(high - low, p.axi_outstanding)
        m.submodules[f"{data_name}_lanes"] = first
        offered, address = getattr(self.words, address_name), getattr(self.beats, address_name)
        fire = address.valid & address.ready
        m.d.comb += [
            address.valid.eq(offered.valid & first.credit_available),
            offered.ready.eq(address.ready & first.credit_available),
            first.word.eq(offered.payload.addr[low:high]),
            first.push.eq(fire),
            first.take_credit.eq(fire),
        ]
        words, beats = getattr(self.words, data_name), getattr(self.beats, data_name)
        source, target = (words, beats) if data_name == "w" else (beats, words)
        passed, lane = Signal(high - low, name=f"{data_name}_passed"), Signal(high - low, name=f"{data_name}_lane")
        m.d.comb += [
            target.valid.eq(source.valid & first.o.valid),
            source.ready.eq(target.ready & first.o.valid),
            lane.eq(first.o.payload + passed),
            first.o.ready.eq(target.valid & target.ready & source.payload.last),
        ]
        with m.If(target.valid & target.ready):
            m.d.sync += passed.eq(passed + 1)
            with m.If(source.payload.last):
                m.d.sync += passed.eq(0)
        return lane
