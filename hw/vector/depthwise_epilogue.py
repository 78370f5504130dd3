"""Requantizes the sums of a depthwise convolution, one group of channels after the other."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.mac.epilogue.scale_normalizer import EXPONENT_BITS
from intloom.hw.pipeline import output_register, pipeline_stages
from intloom.hw.spec.arith import RoundingMode, Scale
from intloom.hw.spec.formats import SCALE_SHIFT_LSB
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import GROUPS
from intloom.hw.vector.depthwise_columns import SUM_BITS
from intloom.hw.vector.depthwise_constants import constant_write

_CONSTANT_BITS = 32
"""Bits of a bias, and of a scale word."""


class DepthwiseEpilogue(wiring.Component):
    """Turns the sums of a window into the slices of a result word, in a pipeline that never stalls.

    A group of a quarter of the channels enters the requantizers in each of four cycles.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    write
        Words of constants, of which biases and scales are stored.
    zp_out
        The output's zero point.
    valid, sums
        The sums of a window.
    result_valid, result
        A slice of results, lowest channels first.

    Handshake
    ---------
    No back-pressure.

    Timing
    ------
    A window in `GROUPS` = 4 cycles. From `valid` to the window's last slice: `LATENCY` = 17 cycles (3 groups before the
    last one, selection, 12 requantization, slice).

    Requirements
    ------------
    From one `valid` to the next: at least `GROUPS` cycles. `write` has had the constants before `valid`, and has none
    while windows are in flight. `zp_out` is stable from `valid` until `ZERO_POINT_STAGE` = 13 cycles later.

    Reset and faults
    ----------------
    Soft reset clears the valid flags and the number of groups in the slice; stored constants survive. There are no
    faults.
    """

    ZERO_POINT_STAGE = GROUPS - 1 + RequantizerLane.ZERO_POINT_STAGE
    LATENCY = GROUPS - 1 + 1 + RequantizerLane.LATENCY + 1

    def __init__(self, params: HardwareParams) -> None:
        # A lane extends the sum's sign to the bias' bits, whatever the width of the array's accumulators.
        self._lane_params = params.replace(acc_bits=SUM_BITS)
        self._mantissa_bits = params.mantissa_bits
        self._lanes = params.depthwise_lanes
        self._slice_groups = params.vector_lanes // self._lanes
        super().__init__(
            {
                "write": In(constant_write(params)),
                "zp_out": In(signed(8)),
                "valid": In(1),
                "sums": In(data.ArrayLayout(signed(SUM_BITS), params.word_bytes)),
                "result_valid": Out(1),
                "result": Out(8 * params.vector_lanes),
            }
        )

    @staticmethod
    def model(total: int, bias: int, scale: Scale, zero_point: int, match: RoundingMode) -> int:
        """The result of a sum."""
        return RequantizerLane.model(total, bias, scale, zero_point, match)

    def elaborate(self, platform: object) -> Module:
        """Select a group, requantize it, join bytes to slices."""
        m = Module()
        group, total = self._select(m)
        # Bit 0: a group is selected; bit i + 1: it is in stage i of the requantizers.
        valid = Signal(RequantizerLane.LATENCY + 1)
        now = Signal()
        m.d.comb += now.eq(self.valid | (group != 0))
        m.d.sync += valid.eq(Cat(now, valid))
        bias, scale = self._constants(m, group)
        zero_point = pipeline_stages(m, "zero_point", self.zp_out, 1, reset_less=True)
        scale_bits = self._mantissa_bits + EXPONENT_BITS
        results = []
        for number in range(self._lanes):
            m.submodules[f"requantizer{number}"] = lane = RequantizerLane(self._lane_params)
            m.d.comb += [
                lane.enable.eq(valid[:-1]),
                lane.acc.eq(total.word_select(number, SUM_BITS).as_signed()),
                lane.bias.eq(bias.word_select(number, _CONSTANT_BITS).as_signed()),
                Cat(lane.mantissa, lane.exponent).eq(scale.word_select(number, scale_bits)),
                lane.zero_point.eq(zero_point),
            ]
            results.append(lane.result)
        self._collect(m, valid[-1], Cat(results))
        return m

    def _select(self, m: Module) -> tuple[Signal, Signal]:
        """The group that is selected, and a cycle later its sums.

        The first group comes with `valid`, when the sums are about to change; the other groups are saved.
        """
        bits = self._lanes * SUM_BITS
        group = Signal(range(GROUPS))
        saved = Signal((GROUPS - 1) * bits, reset_less=True)
        total = Signal(bits, reset_less=True)
        sums = Value.cast(self.sums)
        with m.If(self.valid | (group != 0)):
            m.d.sync += group.eq(group + 1)
        with m.If(self.valid):
            m.d.sync += saved.eq(sums[bits:])
        m.d.sync += total.eq(Cat(sums[:bits], saved).word_select(group, bits))
        return group, total

    def _constants(self, m: Module, group: Signal) -> tuple[Signal, Signal]:
        """Biases with the sums, scales at the requantizers' scale stage."""
        later = pipeline_stages(m, "group", group, RequantizerLane.SCALE_STAGE, reset_less=True)
        words = [self.write.word.word_select(number, _CONSTANT_BITS) for number in range(self._lanes)]
        bias = self._memory(m, "bias", self.write.biases, Cat(words), group)
        scale = self._memory(m, "scale", self.write.scales, Cat(self._scale(word) for word in words), later)
        return bias, scale

    def _scale(self, word: Value) -> Value:
        """Mantissa and exponent in a scale word.

        A scale without the mantissa's top bit is 0: with the largest exponent every result rounds to 0.
        """
        mantissa = word[: self._mantissa_bits]
        exponent = word[SCALE_SHIFT_LSB : SCALE_SHIFT_LSB + EXPONENT_BITS]
        return Cat(mantissa, exponent | (~mantissa[-1]).replicate(EXPONENT_BITS))

    def _memory(self, m: Module, name: str, enable: Value, word: Value, group: Value) -> Signal:
        """The constants of a group, a cycle after its number, from distributed RAM."""
        memory = Memory(shape=len(word), depth=GROUPS, init=[])
        m.submodules[name] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        # One address for both ports: a LUT of the 7 series then stores two bits instead of one and a half.
        address = Signal(range(GROUPS), name=f"{name}_address")
        m.d.comb += [
            address.eq(Mux(enable, self.write.group, group)),
            write.en.eq(enable),
            write.addr.eq(address),
            write.data.eq(word),
            read.addr.eq(address),
        ]
        found = Signal(len(word), name=f"{name}_read", reset_less=True)
        m.d.sync += found.eq(read.data)
        return found

    def _collect(self, m: Module, valid: Value, group: Value) -> None:
        """Groups enter at the top of the slice."""
        result = output_register(m, self.result)
        count = Signal(range(max(2, self._slice_groups)))
        m.d.sync += self.result_valid.eq(valid & (count == self._slice_groups - 1))
        with m.If(valid):
            m.d.sync += result.eq(Cat(result, group)[8 * self._lanes :])
            if self._slice_groups > 1:
                m.d.sync += count.eq(count + 1)
