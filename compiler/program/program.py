"""A compiled program in memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from intloom.hw.spec.isa import Instruction
from intloom.hw.spec.params import HardwareParams


class Layout(StrEnum):
    """How a tensor lies in memory; `word` is the hardware's `rows` bytes."""

    BLOCKED = "blocked"
    """[channel block][y][x] words, each `rows` channels of a pixel; the last block's spare bytes may be anything."""
    PIXELS4 = "pixels4"
    """[y][x / pixels_per_word] words of pixels of four channels; each row starts at a word; spare bytes are zero."""


class Role(StrEnum):
    """What a tensor in memory is for."""

    INPUT = "input"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"
    SHARED = "shared"
    """An intermediate whose memory others use too: it is whole when `first_instruction` ends, and may be gone later."""


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
    """The instruction whose end makes the tensor complete; None for inputs."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One node of the integer graph as it was compiled."""

    name: str
    op: str
    origin: tuple[str, ...]
    macs: int
    """True multiply-accumulates, without padding."""
    predicted_cycles: int
    dram_words: int
    """Words its loads and stores move."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where an instruction comes from: index into `Program.layers`, the tile, and a word on its purpose."""

    layer: int
    tile: int
    note: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Program:
    """Everything needed to run a graph on the accelerator.

    Memory, in words from the base: the encoded instructions at `instructions_at`, constants (`image` at `image_at`),
    then tensors at their places; `memory_words` in all.
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
    source: str = ""
    """SHA-256 of the model that it was compiled from."""
    region: int = 0
    """Which of the model's regions it runs, counted from 0: the host has its turns between them."""
    regions: int = 1
    """How many regions the model has, each a program."""

    def tensor(self, name: str) -> TensorBuffer:
        """The place of tensor `name`."""
        return next(p for p in self.tensors if p.name == name)
