"""A program assembled by hand that keeps the MAC array busy: convolutions with loads before and a store after each."""

import numpy as np

from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Layer, Layout, Program, Provenance, Role, TensorBuffer
from intloom.hw.spec.arith import Scale
from intloom.hw.spec.formats import pack_scale
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import SCRATCH_BITS, Instruction, Kind, LoadTarget, make
from intloom.hw.spec.params import HardwareParams
from intloom.sim.result import Arrays

_KERNEL = 3
_SCALE_EXPONENT = 12
"""Every channel's scale is 2**-12: sums of random products then spread over the int8 range."""


def _sizes(params: HardwareParams, side: int, blocks: int) -> tuple[int, int, int]:
    """Words of input, output and weights of one convolution."""
    tiles = _KERNEL * _KERNEL * blocks
    return blocks * side * side, blocks * side * side, blocks * (params.channel_words + tiles * params.tile_words)


def _image(params: HardwareParams, side: int, blocks: int) -> bytes:
    """Weights of all output blocks, then the input tensor."""
    random = np.random.default_rng(1)
    parts = []
    tile_bytes = _KERNEL * _KERNEL * blocks * params.tile_words * params.word_bytes
    for _ in range(blocks):
        parts.append(np.zeros(params.cols, "<i4").tobytes())
        parts.append(np.full(params.cols, pack_scale(Scale(1 << 23, _SCALE_EXPONENT + 23)), "<u4").tobytes())
        parts.append(random.integers(-128, 128, tile_bytes, dtype=np.int8).tobytes())
    parts.append(random.integers(-128, 128, blocks * side * side * params.word_bytes, dtype=np.int8).tobytes())
    return b"".join(parts)


def _convolution(blocks: int, side: int, output_at: int, weights: int, wait: int) -> Instruction:
    # Row -1 lies one row before the buffer; addresses wrap.
    return make(
        Kind.CONV, wait_load=wait, in_base=0, in_plane=side * side, in_row=side, in_h=side, in_w=side, iy0=-1, ix0=-1,
        in_row_off=(1 << SCRATCH_BITS) - side,
        kernel_h=_KERNEL, kernel_w=_KERNEL, in_blocks=blocks, out_blocks=blocks, weights=weights,
        out_h=side, out_w=side, out_base=output_at, out_plane=side * side, out_row=side,
    )  # fmt: skip


def dense_program(params: HardwareParams, *, side: int, blocks: int, repeats: int) -> tuple[Program, Arrays]:
    """`repeats` convolutions 3x3 of `blocks` channel blocks on a square, one after the other, and no inputs.

    Only for square arrays, where a block of output channels is a word.
    """
    inputs, outputs, weights = _sizes(params, side, blocks)
    count = 2 + 4 * repeats
    image_at = instruction_words(count, params)
    output_at = image_at + weights + inputs
    code = [begin(params)]
    for n in range(repeats):
        at = n * weights % params.weight_words
        code += [
            make(Kind.LOAD, wait_mac=n, target=LoadTarget.WEIGHT, dram=image_at, local=at, n0=weights),
            make(Kind.LOAD, wait_mac=n, dram=image_at + weights, local=0, n0=inputs),
            _convolution(blocks, side, inputs, at, 2 * n + 2).with_fields(wait_store=n),
            make(Kind.STORE, wait_mac=n + 1, dram=output_at, local=inputs, n0=outputs),
        ]
    code.append(make(Kind.END, wait_load=2 * repeats, wait_mac=repeats, wait_store=repeats))
    channels = blocks * params.rows
    macs = repeats * side * side * channels * channels * _KERNEL * _KERNEL
    program = Program(
        name="dense",
        params=params,
        instructions=tuple(code),
        provenance=tuple(Provenance(layer=0, tile=0) for _ in code),
        instructions_at=0,
        image_at=image_at,
        image=_image(params, side, blocks),
        memory_words=output_at + outputs,
        tensors=(
            TensorBuffer(
                name="output", role=Role.OUTPUT, shape=(1, channels, side, side), layout=Layout.BLOCKED,
                address=output_at, words=outputs, scale=1.0, zero_point=0, unsigned=False,
                first_instruction=count - 2,
            ),
        ),
        layers=(
            Layer(
                name="dense", op="Conv", origin=(), macs=macs, vector_macs=0,
                predicted_cycles=macs // params.macs, dram_words=repeats * (inputs + outputs + weights),
            ),
        ),
        predicted_cycles=macs // params.macs,
    )  # fmt: skip
    return program, {}
