"""Channel parameters: bias and scale per channel of two output blocks, one loading while the other is in use."""

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.mac.epilogue.scale_normalizer import EXPONENT_BITS, ScaleNormalizer
from intloom.hw.mac.weights.constants_loader import CONSTANT_WRITE, ConstantKind
from intloom.hw.memory.macro import LEAST_BITS
from intloom.hw.pipeline import output_register, pipeline_stages
from intloom.hw.spec.arith import wrap
from intloom.hw.spec.formats import unpack_scale
from intloom.hw.spec.params import HardwareParams

_WORD_BITS = 32
"""Bits of a bias, and of a packed scale."""


class ChannelStore(wiring.Component):
    """A memory of biases and one of scales per lane, each with two sets (double buffer).

    Members
    -------
    write:
        From the constants loader; words of kind CHANNEL are stored.
    write_set, read_set:
        Set to write, set to read.
    read, group:
        Read the parameters of a group of `lanes` channels.
    corrections:
        What to subtract from the biases of the group.
    bias:
        The biases less their corrections, with the sums.
    mantissa, exponent:
        The normalized scales, at the requantizers' scale stage.

    Handshake
    ---------
    None: every access is accepted.

    Timing
    ------
    One write and one group read a cycle. From `read` to `corrections`: `CORRECTION_STAGE` = 2 cycles; to `bias`:
    `BIAS_LATENCY` = 3; to `mantissa` and `exponent`: `SCALE_LATENCY` = 8. A bias is stored 1 cycle after its write, a
    scale 1 + `ScaleNormalizer.LATENCY` = 5 cycles after it.

    Requirements
    ------------
    A set is not written while items in flight use it.

    Reset and faults
    ----------------
    Memory contents are not reset. There are no faults.
    """

    BIAS_LATENCY = Accumulators.READOUT_LATENCY
    CORRECTION_STAGE = BIAS_LATENCY - 1
    SCALE_LATENCY = BIAS_LATENCY + RequantizerLane.SCALE_STAGE

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._groups = params.cols // params.lanes
        # A small memory is distributed RAM, which needs no register behind it; a larger one may be a macro.
        self._clocked = _WORD_BITS * 2 * self._groups >= LEAST_BITS
        lanes = params.lanes
        super().__init__(
            {
                "write": In(CONSTANT_WRITE),
                "write_set": In(1),
                "read": In(1),
                "read_set": In(1),
                "group": In(range(self._groups)),
                "corrections": In(data.ArrayLayout(signed(params.acc_bits), lanes)),
                "bias": Out(data.ArrayLayout(signed(_WORD_BITS), lanes)),
                "mantissa": Out(data.ArrayLayout(params.mantissa_bits, lanes)),
                "exponent": Out(data.ArrayLayout(EXPONENT_BITS, lanes)),
            }
        )

    @staticmethod
    def model(bias: int, correction: int, scale: int, mantissa_bits: int) -> tuple[int, int, int]:
        """What is read of a channel: its corrected bias, and mantissa and exponent of its packed scale."""
        unpacked = unpack_scale(scale)
        return wrap(bias - correction, _WORD_BITS), *ScaleNormalizer.model(
            unpacked.mantissa, unpacked.shift, mantissa_bits
        )

    def elaborate(self, platform: object) -> Module:
        """Biases are stored as they arrive, scales after the normalizer; reads are delayed to their stage."""
        m = Module()
        cols = self._params.cols
        m.submodules.normalizer = normalizer = ScaleNormalizer(self._params.mantissa_bits)
        channel, is_bias = self.write.kind == ConstantKind.CHANNEL, self.write.index < cols
        slot = Cat(self.write.index[: (cols - 1).bit_length()], self.write_set)
        # One stage for decoding kind and index: the write enables then leave registers.
        # Reset-less with their enables: what these stages still write after a reset is overwritten before its first
        # use, since `ConstantsLoader.LATENCY` is longer than they are.
        bias_write = pipeline_stages(m, "bias_write", Cat(channel & is_bias, slot), 1, reset_less=True)
        scale_write = pipeline_stages(
            m, "scale_write", Cat(channel & ~is_bias, slot), 1 + ScaleNormalizer.LATENCY, reset_less=True
        )
        word = pipeline_stages(m, "word", self.write.word, 1, reset_less=True)
        m.d.comb += normalizer.word.eq(word)
        read = Cat(self.read, self._address(self.group, self.read_set))
        bias_read = pipeline_stages(m, "bias_read", read, self.CORRECTION_STAGE - self._clocked, reset_less=True)
        scale_read = pipeline_stages(
            m, "scale_read", bias_read, self.SCALE_LATENCY - self.CORRECTION_STAGE, reset_less=True
        )
        biases = output_register(m, self.bias, "biases")
        scale = Cat(normalizer.mantissa, normalizer.exponent)
        for lane in range(self._params.lanes):
            bias = self._memory(m, f"bias{lane}", lane, bias_write, word, bias_read)
            scale_data = self._memory(m, f"scale{lane}", lane, scale_write, scale, scale_read)
            m.d.sync += biases[lane].eq(bias.as_signed() - self.corrections[lane])
            m.d.comb += Cat(self.mantissa[lane], self.exponent[lane]).eq(scale_data)
        return m

    def _address(self, group: Signal, number: Signal) -> Signal:
        return Cat(group[: (self._groups - 1).bit_length()], number)

    def _memory(self, m: Module, name: str, lane: int, write: Signal, word: Signal, read: Signal) -> Signal:
        """One lane's memory; `write` and `read` are an enable bit below a channel's or a group's slot."""
        memory = Memory(shape=len(word), depth=2 * self._groups, init=[])
        m.submodules[name] = memory
        write_port, read_port = memory.write_port(), memory.read_port(domain="sync" if self._clocked else "comb")
        lane_bits = (self._params.lanes - 1).bit_length()
        slot = write[1:]
        m.d.comb += [
            write_port.en.eq(write[0] & (slot[:lane_bits] == lane)),
            write_port.addr.eq(slot[lane_bits:]),
            write_port.data.eq(word),
            read_port.addr.eq(read[1:]),
        ]
        if self._clocked:
            m.d.comb += read_port.en.eq(read[0])
        return read_port.data
