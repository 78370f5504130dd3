"""The device image: programs, constants and tensor tables as one block of bytes that a driver in C loads.

All numbers are 32-bit and little-endian; offsets and sizes are in bytes. The image is a header, one record for each
region, one record for each tensor, the names, and the instructions and constants of all regions. Every part starts at a
multiple of `ALIGNMENT`. The records below are the only statement of their members' order: packing, the C header and the
manual derive from them.
"""

import zlib
from dataclasses import dataclass
from enum import IntEnum

MAGIC = 0x494D4F4C
"""`LOMI` in ASCII, lowest byte first."""
VERSION = 1
ALIGNMENT = 64
REGION_ALIGNMENT = 4096
"""Regions start at multiples of this in the memory window: AXI bursts do not cross these addresses."""
NO_TENSOR = 0xFFFFFFFF
CHECKED_FROM = 16
"""The checksum covers the image from this byte on."""


class ImageRole(IntEnum):
    """Role of a tensor of a region."""

    INPUT = 0
    OUTPUT = 1


class ImageLayout(IntEnum):
    """Layout of a tensor in memory; a word has `word_bytes` bytes."""

    BLOCKED = 0
    """[channel block][y][x] words, each with as many channels of a pixel as a word has bytes."""
    PIXELS4 = 1
    """[y][x] pixels of four bytes; each row starts at a word; unused bytes are zero."""


@dataclass(frozen=True)
class Member:
    """One 32-bit number of a record."""

    name: str
    doc: str


@dataclass(frozen=True)
class Record:
    """A record of the image: its members, in order."""

    name: str
    doc: str
    members: tuple[Member, ...]

    @property
    def size(self) -> int:
        """Bytes of the record."""
        return 4 * len(self.members)

    def offset(self, name: str) -> int:
        """Byte offset of a member."""
        return 4 * [m.name for m in self.members].index(name)

    def pack(self, **values: int) -> bytes:
        """The record's bytes; a value for every member, negative ones in two's complement."""
        if set(values) != {m.name for m in self.members}:
            raise ValueError(f"{self.name} record must have exactly its members, not {sorted(values)}")
        return b"".join((values[m.name] & 0xFFFFFFFF).to_bytes(4, "little") for m in self.members)


HEADER = Record(
    "header",
    "Start of the image.",
    (
        Member("magic", "`LOMI` in ASCII, lowest byte first."),
        Member("version", "Version of this format."),
        Member("length", "Bytes of the whole image."),
        Member("crc", f"CRC-32 (IEEE 802.3) of the image from byte {CHECKED_FROM} on."),
        Member("isa_version", "Instruction set version of the programs."),
        Member("fingerprint", "Fingerprint of the hardware parameters that the programs were compiled for."),
        Member("word_bytes", "Bytes of a word of the accelerator."),
        Member("window_bytes", "Bytes of shared memory that all regions take together."),
        Member("regions", "Number of regions."),
        Member("regions_at", "Offset of the region records in the image."),
        Member("tensors", "Number of tensors of all regions."),
        Member("tensors_at", "Offset of the tensor records in the image."),
        Member("names_at", "Offset of the names in the image; each ends with a zero byte."),
        Member("names_bytes", "Bytes of all names."),
    ),
)
REGION = Record(
    "region",
    "A program and its memory. The host runs its own parts of the model between regions.",
    (
        Member("window_at", f"Start of the region's memory in the window; a multiple of {REGION_ALIGNMENT}."),
        Member("window_bytes", "Bytes of the region's memory."),
        Member("instructions", "Number of instructions."),
        Member("code_at", "Offset of the instructions in the image."),
        Member("code_bytes", "Bytes of the instructions."),
        Member("code_to", "Where the instructions go in the region's memory."),
        Member("data_at", "Offset of the constants in the image."),
        Member("data_bytes", "Bytes of the constants."),
        Member("data_to", "Where the constants go in the region's memory."),
        Member("first_tensor", "Index of the region's first tensor."),
        Member("tensors", "Number of the region's tensors."),
        Member("cycles", "Predicted cycles, or 4294967295 if there are more."),
    ),
)
TENSOR = Record(
    "tensor",
    "An input or output of a region: an int8 tensor of one batch.",
    (
        Member("name_at", "Offset of the name among the names."),
        Member("role", "0: input, 1: output."),
        Member("layout", "0: blocks of channels, 1: pixels of four bytes."),
        Member("channels", "Channels."),
        Member("height", "Rows."),
        Member("width", "Pixels in a row."),
        Member("window_at", "Start of the tensor in the window."),
        Member("bytes", "Bytes of the tensor in the window."),
        Member("scale", "Scale of the quantization: the bits of an IEEE 754 single."),
        Member("zero_point", "Zero point of the int8 values, in two's complement."),
        Member("unsigned_type", "1: the model's type is uint8, 128 more than the int8 values; 0: it is int8."),
        Member("source", "For inputs: index of the tensor of an earlier region with this content, or 4294967295."),
    ),
)
RECORDS = (HEADER, REGION, TENSOR)


def checksum(image: bytes) -> int:
    """The CRC-32 of an image's header."""
    return zlib.crc32(image[CHECKED_FROM:])
