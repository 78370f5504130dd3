"""Occupancy of the double-buffered constants: channel parameters, tables and residual constants."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.weights.constants_loader import CONSTANT_WRITE, ConstantKind
from intloom.hw.spec.formats import TABLE_BYTES

_LAST_RESIDUAL_WORD = 3
_SETS = 2


class ConstantSets(wiring.Component):
    """Counts loaded against released sets, so that the constants loader never overwrites a set in use.

    Channel parameters and tables have two sets each, written alternately. Residual constants have one shadow set, which
    `residual_activated` copies.

    Members
    -------
    write:
        The element that is stored in this cycle.
    channels_loaded, channels_released:
        Pulses: the last channel parameter of a block is stored; the oldest block's set is no longer in use.
    table_switched:
        Pulse: the other table set is in use from now on, and the previous one is free.
    residual_activated:
        Pulse: the residual shadow set was copied.
    channels_free, table_free, residual_free:
        The set that would be written next is not in use.
    channel_set, table_set:
        The set to write.

    Handshake
    ---------
    All inputs are strobes; the outputs are levels.

    Timing
    ------
    One event of each kind a cycle. From an event to the outputs: 1 cycle.

    Requirements
    ------------
    A set is written only while it is reported free. Releases come in the order of loads.

    Reset and faults
    ----------------
    Soft reset frees all sets. There are no faults.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "write": In(CONSTANT_WRITE),
                "channels_loaded": In(1),
                "channels_released": In(1),
                "table_switched": In(1),
                "residual_activated": In(1),
                "channels_free": Out(1),
                "table_free": Out(1),
                "residual_free": Out(1),
                "channel_set": Out(1),
                # Readout switches sets when it starts an instruction that loads a table, so the first goes to set 1.
                "table_set": Out(1, init=1),
            }
        )

    @staticmethod
    def model(loaded: int, released: int) -> bool:
        """Whether a channel set is free after so many blocks loaded and released."""
        return loaded - released < _SETS

    def elaborate(self, platform: object) -> Module:
        """A count for channels, one for tables, a flag for residuals."""
        m = Module()
        channels = Signal(range(_SETS + 1))
        # Signed, from -1 to 2.
        tables = Signal(3)
        residual = Signal()
        table_loaded = (self.write.kind == ConstantKind.TABLE) & (self.write.index == TABLE_BYTES - 1)
        residual_loaded = (self.write.kind == ConstantKind.RESIDUAL) & (self.write.index == _LAST_RESIDUAL_WORD)
        m.d.sync += [
            channels.eq(channels + self.channels_loaded - self.channels_released),
            tables.eq(tables + table_loaded - self.table_switched),
            self.channel_set.eq(self.channel_set ^ self.channels_loaded),
            self.table_set.eq(self.table_set ^ table_loaded),
        ]
        with m.If(self.residual_activated):
            m.d.sync += residual.eq(0)
        with m.If(residual_loaded):
            m.d.sync += residual.eq(1)
        m.d.comb += [
            self.channels_free.eq(channels != _SETS),
            # Negative while the switch to a table precedes its load's last byte: the other set is then free.
            self.table_free.eq(tables.as_signed() <= 0),
            self.residual_free.eq(~residual),
        ]
        return m
