"""Packing of a model's programs into a device image; `intloom.hw.spec.image_format` defines the format."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from intloom.common.errors import UnsupportedError
from intloom.compiler.program.memory import encode_all
from intloom.compiler.program.program import Program, Role, TensorBuffer
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.fields import ISA_VERSION
from intloom.hw.spec.image_format import (
    ALIGNMENT,
    HEADER,
    MAGIC,
    NO_TENSOR,
    REGION,
    REGION_ALIGNMENT,
    TENSOR,
    VERSION,
    ImageLayout,
    ImageRole,
    checksum,
)

_LARGEST = 0xFFFFFFFF


@dataclass(frozen=True)
class ImageTensor:
    """An input or output of a region in the memory window."""

    region: int
    buffer: TensorBuffer
    window_at: int
    """Its first byte in the window."""
    bytes: int
    source: int | None
    """For inputs: index of the tensor of an earlier region with the same content."""

    @property
    def role(self) -> ImageRole:
        """Its role in the image."""
        return ImageRole[self.buffer.role.name]


@dataclass(frozen=True)
class ImagePlan:
    """Where regions and tensors lie in the memory window."""

    region_starts: tuple[int, ...]
    tensors: tuple[ImageTensor, ...]
    window_bytes: int


def _up(value: int, step: int) -> int:
    return value + -value % step


def plan_image(programs: Sequence[Program]) -> ImagePlan:
    """The memory window of a model's regions: one after the other, so that all stay loaded."""
    starts, tensors = list[int](), list[ImageTensor]()
    end = 0
    for program in programs:
        starts.append(_up(end, REGION_ALIGNMENT))
        word = program.params.word_bytes
        earlier = {t.buffer.name: i for i, t in enumerate(tensors)}
        for buffer in (t for t in program.tensors if t.role in (Role.INPUT, Role.OUTPUT)):
            source = earlier.get(buffer.name) if buffer.role is Role.INPUT else None
            at = starts[-1] + buffer.address * word
            tensors.append(ImageTensor(program.region, buffer, at, buffer.words * word, source))
        end = starts[-1] + program.memory_words * word
    if end > _LARGEST:
        message = f"a device image must need less than 4 GiB of memory, not {end} bytes"
        raise UnsupportedError(message, Refusal.SIZE.number)
    return ImagePlan(tuple(starts), tuple(tensors), end)


def _tensor_record(tensor: ImageTensor, name_at: int) -> bytes:
    buffer = tensor.buffer
    _, channels, height, width = buffer.shape
    return TENSOR.pack(
        name_at=name_at,
        role=tensor.role,
        layout=ImageLayout[buffer.layout.name],
        channels=channels,
        height=height,
        width=width,
        window_at=tensor.window_at,
        bytes=tensor.bytes,
        scale=int.from_bytes(struct.pack("<f", buffer.scale), "little"),
        zero_point=buffer.zero_point,
        unsigned_type=int(buffer.unsigned),
        source=NO_TENSOR if tensor.source is None else tensor.source,
    )


def _append(image: bytearray, data: bytes) -> int:
    """Append a part; returns its offset in the image."""
    image += bytes(-len(image) % ALIGNMENT)
    at = len(image)
    image += data
    return at


def _names(plan: ImagePlan) -> tuple[bytes, list[int]]:
    """All names, and the offset of each tensor's name among them."""
    names = [t.buffer.name.encode() + b"\0" for t in plan.tensors]
    return b"".join(names), [sum(map(len, names[:i])) for i in range(len(names))]


def _region_record(program: Program, start: int, tensors: Sequence[int], image: bytearray) -> bytes:
    """The record of a region with these tensors; its instructions and constants are appended to the image."""
    word = program.params.word_bytes
    code = encode_all(program)
    return REGION.pack(
        window_at=start,
        window_bytes=program.memory_words * word,
        instructions=len(program.instructions),
        code_at=_append(image, code),
        code_bytes=len(code),
        code_to=program.instructions_at * word,
        data_at=_append(image, program.image),
        data_bytes=len(program.image),
        data_to=program.image_at * word,
        first_tensor=min(tensors, default=0),
        tensors=len(tensors),
        cycles=min(program.predicted_cycles, _LARGEST),
    )


def device_image(programs: Sequence[Program]) -> bytes:
    """The device image of a model's regions.

    Raises
    ------
    UnsupportedError
        The regions need 4 GiB of memory or more.
    """
    plan = plan_image(programs)
    regions_at = _up(HEADER.size, ALIGNMENT)
    tensors_at = _up(regions_at + len(programs) * REGION.size, ALIGNMENT)
    # Header and records follow when it is known where their parts are.
    image = bytearray(tensors_at + len(plan.tensors) * TENSOR.size)
    names, name_at = _names(plan)
    names_at = _append(image, names)
    regions = b""
    for program, start in zip(programs, plan.region_starts, strict=True):
        own = [i for i, t in enumerate(plan.tensors) if t.region == program.region]
        regions += _region_record(program, start, own, image)
    tensors = b"".join(map(_tensor_record, plan.tensors, name_at))
    params = programs[0].params
    fields = {
        "magic": MAGIC,
        "version": VERSION,
        "isa_version": ISA_VERSION,
        "fingerprint": params.fingerprint(),
        "word_bytes": params.word_bytes,
        "window_bytes": plan.window_bytes,
        "regions": len(programs),
        "regions_at": regions_at,
        "tensors": len(plan.tensors),
        "tensors_at": tensors_at,
        "names_at": names_at,
        "names_bytes": len(names),
    }
    image[regions_at : regions_at + len(regions)] = regions
    image[tensors_at : tensors_at + len(tensors)] = tensors
    fields["length"] = len(image)
    image[: HEADER.size] = HEADER.pack(crc=0, **fields)
    image[: HEADER.size] = HEADER.pack(crc=checksum(bytes(image)), **fields)
    return bytes(image)
