"""Proofs of the width converter: AXI's rules on the port, and the same bytes as on the side of the words.

The window is proved for bursts of words (`test_window`); equal bytes carry it to the port.
"""

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Signal

from intloom.hw.bus.width_converter import WidthConverter
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.formal.order import assert_stream_holds, assume_stream_holds, free_inputs
from tests.hw.formal.planted import each_night, planted
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
NARROW = preset("small").replace(axi_data_bits=32, axi_burst=256)
WIDE = preset("nano").replace(axi_data_bits=64, axi_outstanding=2)
_CYCLES = 9
"""More than two bursts of two words on the narrow port."""


class Bench(Elaboratable):
    """The converter between any masters and any slave that keep what they offer."""

    def __init__(self, params: HardwareParams, component: type[WidthConverter] = WidthConverter) -> None:
        self.params, self.component = params, component

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.converter = converter = self.component(self.params)
        m.d.comb += [*free_inputs(converter)]
        words, beats = converter.words, converter.beats
        for offered in (words.ar, words.aw, words.w, beats.r, beats.b):
            assume_stream_holds(m, offered.valid, offered.ready, offered.payload)
        for offered in (beats.ar, beats.aw, beats.w, words.r, words.b):
            assert_stream_holds(m, offered.valid, offered.ready, offered.payload)
        for one, other in ((words.ar, beats.ar), (words.aw, beats.aw)):
            size = (self.params.word_bytes - 1).bit_length()
            m.d.comb += Assume((one.payload.size == size) & (one.payload.len < self.params.burst_words))
            with m.If(other.valid):
                m.d.comb += [
                    Assert(one.valid & (other.payload.addr == one.payload.addr)),
                    Assert((other.payload.len + 1) << other.payload.size == (one.payload.len + 1) << size),
                    Assert(1 << other.payload.size == self.params.beat_bytes),
                ]
        for one, other in ((words.w, beats.w), (words.r, beats.r)):
            self._assert_parts(m, one, other)
        return m

    def _assert_parts(self, m: Module, word: object, beat: object) -> None:
        """A word passes with the last of its beats, and the last beat of a burst with its last word."""
        part = Signal(range(self.params.word_beats + 1))
        with m.If(beat.valid & beat.ready):
            m.d.sync += part.eq(part + 1)
            m.d.comb += Assert((word.valid & word.ready) == (part == self.params.word_beats - 1))
            with m.If(part == self.params.word_beats - 1):
                m.d.sync += part.eq(0)
                m.d.comb += Assert(word.payload.last == beat.payload.last)
        with m.Else():
            m.d.comb += Assert(~(word.valid & word.ready))


@pytest.mark.parametrize("params", [NARROW, WIDE], ids=["narrow", "wide"])
def test_the_port_keeps_axis_rules_and_the_bytes_of_the_words(params: HardwareParams, tmp_path: Path) -> None:
    result = prove(Bench(params), tmp_path, depth=_CYCLES)
    assert result.holds, result.log


_FAULTS = {
    "C(0, bits), words.len": ("narrow", "C(parts_less_one, bits), words.len"),
    "beats.ready.eq(1)": ("narrow", "beats.ready.eq(words.ready | ~last)"),
    "words.ready.eq(beats.ready)": ("narrow", "words.ready.eq(beats.ready & last)"),
    "words.valid.eq(beats.valid)": ("narrow", "words.valid.eq(beats.valid & last)"),
    "eq(offered.valid)": ("wide", "eq(offered.valid & first.credit_available)"),
    "first.push.eq(offered.valid)": ("wide", "first.push.eq(fire)"),
    "source.ready.eq(target.ready)": ("wide", "source.ready.eq(target.ready & first.o.valid)"),
}


@pytest.mark.parametrize("new", each_night(_FAULTS))
def test_a_faulty_converter_is_refuted(new: str, tmp_path: Path) -> None:
    shape, old = _FAULTS[new]
    bench = Bench({"narrow": NARROW, "wide": WIDE}[shape], planted(WidthConverter, (old, new)))
    assert not prove(bench, tmp_path, depth=_CYCLES).holds
