"""Decodes the words of coded loads; `intloom.hw.spec.word_code` defines the code."""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.dma.runs import CODED_BITS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.word_code import UNITS, WIDTH_BITS, group_words


def _window(units: Sequence[Value], position: Value) -> list[Value]:
    """The units from `position` on, seven fewer, by stages that shift by 4, 2 and 1 units."""
    for bit in reversed(range(len(position))):
        step = 1 << bit
        units = [Mux(position[bit], units[k + step], units[k]) for k in range(len(units) - step)]
    return list(units)


class _State:
    """Registers of the decoder: two beats, the first of which is in use, and the widths of a group."""

    def __init__(self, rows: int) -> None:
        self.low, self.high = (Signal(UNITS * rows, name=name, reset_less=True) for name in ("low", "high"))
        self.low_valid, self.high_valid = Signal(), Signal()
        self.position = Signal(range(UNITS))
        """The next unit in `low`."""
        self.widths = Signal(rows, reset_less=True)
        self.left = Signal(range(group_words(rows) + 1))
        """Words of the group that follow."""
        self.started = Signal()
        self.beats = Signal(CODED_BITS, reset_less=True)
        """Beats of the run that follow."""


class WordDecoder(wiring.Component):
    """Converts the beats of a coded run into its words.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    active, beats
        A coded run is next, or in progress, and its number of beats.
    last
        The next word is the run's last.
    i
        The beats of the run.
    o
        Its words.
    broken
        The beats are no code of the run's words.

    Handshake
    ---------
    `i` and `o` are streams, but `o.valid` may fall with `broken`. `i.ready` depends on `o.ready`. `active` falls, or
    the next run follows, in the cycle after the run's last word.

    Timing
    ------
    From `active` to `i.ready`: 1 cycle. From the first beat to the first word: `LATENCY` = 2 cycles. Then one word per
    cycle, as long as beats arrive and they fill the registers, which hold two beats. Widths that follow a word of 8
    units at the end of the second beat take one cycle more.

    Requirements
    ------------
    `beats` is at least 1, and stable while `active` is high.

    Reset and faults
    ----------------
    Reset drops the run. `broken` stays high until reset; all beats are then taken and dropped.
    """

    LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._rows = params.rows
        super().__init__(
            {
                "active": In(1),
                "beats": In(CODED_BITS),
                "last": In(1),
                "i": In(stream.Signature(UNITS * params.rows)),
                "o": Out(stream.Signature(UNITS * params.rows)),
                "broken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Take the units of a word, with the widths of the next group where they follow, and refill the beats."""
        m = Module()
        rows, state = self._rows, _State(self._rows)
        width, position = state.widths[:WIDTH_BITS], state.position
        both = Cat(state.low, state.high)
        units = _window([both[k * rows :][:rows] for k in range(2 * UNITS)], position)
        available = Signal(range(2 * UNITS + 1))
        m.d.comb += available.eq(Mux(state.high_valid, 2 * UNITS, Mux(state.low_valid, UNITS, 0)) - position)
        in_group, fits = state.left != 0, width <= available
        end = Signal(range(2 * UNITS))
        surplus = (state.beats != 0) | Mux(state.high_valid, end <= UNITS, state.low_valid & (end == 0))
        missing = (state.beats == 0) & Mux(in_group, ~fits, available == 0)
        illegal = state.started & (missing | (in_group & ((width > UNITS) | (fits & self.last & surplus))))
        fire, header, used = Signal(), Signal(), Signal(range(UNITS + 2))
        # Not all 16 units that are held may be used at once: `position` is in the first of two beats.
        follows = (state.left == 1) & ~self.last & (width < available) & ~(width[-1] & position.all())
        m.d.comb += [
            self.o.valid.eq(state.started & in_group & fits & ~illegal & ~self.broken),
            fire.eq(self.o.valid & self.o.ready),
            header.eq(Mux(in_group, fire & follows, state.started & (available != 0))),
            used.eq(Mux(fire, width, 0) + header),
            end.eq(position + Mux(in_group, width, 0)),
        ]
        self._spread(m, units, width)
        with m.If(illegal):
            m.d.sync += self.broken.eq(1)
        with m.If(header):
            m.d.sync += [state.widths.eq(Array(units)[Mux(in_group, width, 0)]), state.left.eq(group_words(rows))]
        with m.Elif(fire):
            m.d.sync += [state.widths.eq(state.widths >> WIDTH_BITS), state.left.eq(state.left - 1)]
        self._refill(m, state, used)
        with m.If(fire & self.last):
            m.d.sync += [state.started.eq(0), state.low_valid.eq(0), state.high_valid.eq(0)]
            m.d.sync += [position.eq(0), state.left.eq(0)]
        return m

    def _spread(self, m: Module, units: list[Value], width: Value) -> None:
        """The word's bytes from its units; the last unit is their sign."""
        rows = self._rows
        sign = Mux(width == 0, 0, Array(units)[(width - 1)[:3]])
        planes = [Mux(k < width, units[k], sign) for k in range(UNITS)]
        m.d.comb += self.o.payload.eq(Cat(planes[k][b] for b in range(rows) for k in range(UNITS)))

    def _refill(self, m: Module, state: _State, used: Value) -> None:
        """Step by the units that are used, and take a beat where there is space."""
        end, shift, taken, held = Signal(range(2 * UNITS)), Signal(), Signal(), Signal()
        m.d.comb += [
            end.eq(state.position + used),
            shift.eq(end[-1]),
            held.eq(Mux(shift, state.high_valid, state.low_valid)),
            taken.eq(state.started & (state.beats != 0) & (~state.high_valid | shift)),
            self.i.ready.eq(taken | self.broken),
        ]
        arrives = self.i.valid & taken
        m.d.sync += [
            state.position.eq(end),
            state.low_valid.eq(held | arrives),
            state.high_valid.eq(Mux(held, arrives | (state.high_valid & ~shift), 0)),
        ]
        with m.If(shift | ~state.low_valid):
            m.d.sync += state.low.eq(Mux(state.high_valid, state.high, self.i.payload))
        with m.If(shift | ~state.high_valid):
            m.d.sync += state.high.eq(self.i.payload)
        with m.If(arrives):
            m.d.sync += state.beats.eq(state.beats - 1)
        with m.If(self.active & ~state.started):
            m.d.sync += [state.started.eq(1), state.beats.eq(self.beats)]
