"""Memory contents: packing and unpacking of tensors, and the whole memory before and after a run."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.program.program import Layout, Program, Role, TensorBuffer
from intloom.hw.spec.isa import INSTRUCTION_BYTES, encode
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import add_check

PIXEL_CHANNELS = 4
"""Channels of a pixel in the `pixels4` layout."""


def channel_blocks(channels: int, params: HardwareParams) -> int:
    """Words that hold `channels` channels of a pixel."""
    return -(-channels // params.rows)


def row_words(width: int, layout: Layout, params: HardwareParams) -> int:
    """Words of one row of one channel block."""
    return width if layout is Layout.BLOCKED else -(-width // params.pixels_per_word)


def tensor_words(shape: tuple[int, int, int, int], layout: Layout, params: HardwareParams) -> int:
    """Words that a tensor takes in memory."""
    _, channels, height, width = shape
    blocks = channel_blocks(channels, params) if layout is Layout.BLOCKED else 1
    return blocks * height * row_words(width, layout, params)


def instruction_words(count: int, params: HardwareParams) -> int:
    """Words that `count` encoded instructions take in memory."""
    return count * INSTRUCTION_BYTES // params.word_bytes


def _check_array(tensor: TensorBuffer, array: NDArray[np.int8]) -> None:
    if array.dtype != np.int8:
        raise UsageError(f"tensor {tensor.name!r} must be int8, not {array.dtype}: convert it first")
    if array.shape != tensor.shape:
        raise UsageError(f"tensor {tensor.name!r} must have shape {tensor.shape}, not {array.shape}")


def pack_tensor(tensor: TensorBuffer, params: HardwareParams, array: NDArray[np.int8]) -> bytes:
    """The bytes of an int8 NCHW array in the tensor's layout; padding bytes are zero."""
    _check_array(tensor, array)
    _, channels, height, width = tensor.shape
    if tensor.layout is Layout.PIXELS4:
        padded_width = row_words(width, tensor.layout, params) * params.pixels_per_word
        pixels = np.zeros((height, padded_width, PIXEL_CHANNELS), np.int8)
        pixels[:, :width, :channels] = array[0].transpose(1, 2, 0)
        return pixels.tobytes()
    return pack_blocks(array[0], params)


def pack_blocks(image: NDArray[np.int8], params: HardwareParams) -> bytes:
    """The bytes of [channels, height, width] as blocks of channels; padding bytes are zero."""
    channels, height, width = image.shape
    blocks = channel_blocks(channels, params)
    padded = np.zeros((blocks * params.rows, height, width), np.int8)
    padded[:channels] = image
    return padded.reshape(blocks, params.rows, height, width).transpose(0, 2, 3, 1).tobytes()


def unpack_tensor(tensor: TensorBuffer, params: HardwareParams, data: bytes) -> NDArray[np.int8]:
    """The int8 NCHW array in a tensor's bytes."""
    _, channels, height, width = tensor.shape
    expected = tensor.words * params.word_bytes
    if len(data) != expected:
        raise UsageError(f"tensor {tensor.name!r} must have {expected} bytes, not {len(data)}")
    raw = np.frombuffer(data, np.int8)
    if tensor.layout is Layout.PIXELS4:
        pixels = raw.reshape(height, -1, PIXEL_CHANNELS)[:, :width, :channels]
        return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])
    blocks = raw.reshape(-1, height, width, params.rows).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(blocks.reshape(1, -1, height, width)[:, :channels])


def _check_inputs(program: Program, inputs: Mapping[str, NDArray[np.int8]]) -> list[TensorBuffer]:
    tensors = [p for p in program.tensors if p.role is Role.INPUT]
    names = [p.name for p in tensors]
    if missing := [n for n in names if n not in inputs]:
        raise UsageError(f"input {missing[0]!r} of program {program.name!r} is missing: it needs {', '.join(names)}")
    if unknown := sorted(set(inputs) - set(names)):
        raise UsageError(f"program {program.name!r} has no input {unknown[0]!r}: it needs {', '.join(names)}")
    return tensors


def encode_all(program: Program) -> bytes:
    """The encoded instruction stream with its program check."""
    return add_check(encode(i) for i in program.instructions)


def memory_parts(program: Program, inputs: Mapping[str, NDArray[np.int8]]) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Instructions and constants, and the inputs: bytes by the word at which they begin."""
    constants = {program.instructions_at: encode_all(program)}
    if program.image:
        constants[program.image_at] = program.image
    return constants, {
        tensor.address: pack_tensor(tensor, program.params, np.asarray(inputs[tensor.name]))
        for tensor in _check_inputs(program, inputs)
    }


def initial_memory(program: Program, inputs: Mapping[str, NDArray[np.int8]]) -> NDArray[np.uint8]:
    """The whole memory before a run: instructions, constants and inputs; all other words are zero."""
    word = program.params.word_bytes
    memory = np.zeros(program.memory_words * word, np.uint8)
    for part in memory_parts(program, inputs):
        for at, data in part.items():
            memory[at * word : at * word + len(data)] = np.frombuffer(data, np.uint8)
    return memory


def read_tensor(program: Program, memory: NDArray[np.uint8], tensor: TensorBuffer) -> NDArray[np.int8]:
    """A tensor's value in the accelerator's memory."""
    word = program.params.word_bytes
    return unpack_tensor(tensor, program.params, memory[tensor.address * word :][: tensor.words * word].tobytes())


def read_outputs(program: Program, memory: NDArray[np.uint8]) -> dict[str, NDArray[np.int8]]:
    """All output tensors from the accelerator's memory after a run."""
    return {p.name: read_tensor(program, memory, p) for p in program.tensors if p.role is Role.OUTPUT}


_SUFFIX = ":pairs"


def paired_name(name: str) -> str:
    """The name of a tensor with pairs of pixels."""
    return name + _SUFFIX


def without_pairs(tensors: Mapping[str, NDArray[np.int8]]) -> dict[str, NDArray[np.int8]]:
    """Tensors [..., channel, row, column] with the names and pixels that they have in the graph."""
    return {
        name.removesuffix(_SUFFIX): _separated(tensor) if name.endswith(_SUFFIX) else tensor
        for name, tensor in tensors.items()
    }


def _separated(tensor: NDArray[np.int8]) -> NDArray[np.int8]:
    *batch, channels, height, width = tensor.shape
    # [..., pixel of the pair, channel, row, pair]
    pairs = tensor.reshape(*batch, 2, channels // 2, height, width)
    return np.moveaxis(pairs, -4, -1).reshape(*batch, channels // 2, height, 2 * width)
