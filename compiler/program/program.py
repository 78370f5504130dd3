"""A compiled program in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from intloom.compiler.program.memory_timing import MemoryTiming
from intloom.hw.spec.isa import Instruction
from intloom.hw.spec.params import HardwareParams


class Layout(StrEnum):
    """Layout of a tensor in memory; a word has `rows` bytes."""

    BLOCKED = "blocked"
    """[channel block][y][x] words, each `rows` channels of a pixel; unused bytes of the last block are undefined."""
    PIXELS4 = "pixels4"
    """[y][x / pixels_per_word] words of pixels of four channels; each row starts at a word; unused bytes are zero."""


class Role(StrEnum):
    """Role of a tensor in memory."""

    INPUT = "input"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"
    SHARED = "shared"
    """An intermediate that shares memory with others: complete when `first_instruction` ends, overwritten later."""


@dataclass(frozen=True, kw_only=True)
class TensorBuffer:
    """A tensor in memory: address and size in words, counted from the memory base."""

    name: str
    role: Role
    shape: tuple[int, int, int, int]
    layout: Layout
    address: int
    words: int
    scale: float
    zero_point: int
    unsigned: bool
    first_instruction: int | None = None
    """The instruction that completes the tensor; None for inputs."""


@dataclass(frozen=True, kw_only=True)
class LocalTensor:
    """A tensor that is computed in the scratchpad and is never in DRAM as a whole.

    It is the channel blocks from `first_block` on of a buffer, whose words `Program.local_results` locates.
    """

    name: str
    shape: tuple[int, int, int, int]
    buffer: int
    first_block: int


@dataclass(frozen=True, kw_only=True)
class Residence:
    """How a tensor (or several side by side along channels) is held, and why it leaves the chip."""

    tensor: str
    words: int
    rows: int
    """Rows that the scratchpad holds at once; 0: it is only loaded and stored in tiles."""
    height: int
    reason: str = ""
    """Why it is in DRAM as well; empty: it never leaves the scratchpad."""


class LocalResult(NamedTuple):
    """Where the first word that an instruction writes belongs: buffer, channel block, row and column."""

    instruction: int
    buffer: int
    block: int
    y: int
    x: int


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One node of the compiled integer graph."""

    name: str
    op: str
    origin: tuple[str, ...]
    macs: int
    """Multiply-accumulates that the array makes, without padding."""
    vector_macs: int
    """Multiply-accumulates that the vector unit makes (VDEPTHWISE), without padding."""
    predicted_cycles: int
    dram_words: int
    """Words its loads and stores move."""


def array_use(macs: int, cycles: int, params: HardwareParams) -> float:
    """Share of the array's products in some cycles that are `macs`, from 0 to 1."""
    return macs / (cycles * params.macs) if cycles else 0.0


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of an instruction: index into `Program.layers`, tile number, and a note on its purpose."""

    layer: int
    tile: int
    note: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Program:
    """Everything needed to run a graph on the accelerator.

    Memory, in words from the base: the encoded instructions at `instructions_at`, constants (`image` at `image_at`),
    then tensors; `memory_words` in total.
    """

    name: str
    params: HardwareParams
    instructions: tuple[Instruction, ...]
    provenance: tuple[Provenance, ...]
    instructions_at: int
    image_at: int
    image: bytes
    memory_words: int
    tensors: tuple[TensorBuffer, ...]
    layers: tuple[Layer, ...]
    predicted_cycles: int
    memory: MemoryTiming = field(default_factory=MemoryTiming)
    """The memory that the schedule was made for and `predicted_cycles` assumes."""
    local_tensors: tuple[LocalTensor, ...] = ()
    local_results: tuple[LocalResult, ...] = ()
    """Instructions that write parts of tensors in the scratchpad, in program order."""
    residences: tuple[Residence, ...] = ()
    source: str = ""
    """SHA-256 of the source model."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes chosen for dimensions that are open in the source model."""
    region: int = 0
    """Index of the model region that it runs; the host runs its own parts between regions."""
    regions: int = 1
    """Number of regions of the model; each has a program."""

    def __repr__(self) -> str:
        return f"<Program {self.name!r}, {len(self.instructions)} instructions, {len(self.image)} bytes of constants>"

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the array makes, without padding."""
        return sum(layer.macs for layer in self.layers)

    @property
    def vector_macs(self) -> int:
        """Multiply-accumulates that the vector unit makes, without padding."""
        return sum(layer.vector_macs for layer in self.layers)

    def tensor(self, name: str) -> TensorBuffer:
        """The tensor called `name`."""
        return next(p for p in self.tensors if p.name == name)
