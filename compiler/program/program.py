"""A compiled program in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, NamedTuple

from intloom.common.errors import UsageError
from intloom.hw.spec.isa import Instruction
from intloom.hw.spec.params import HardwareParams

_LONGEST_LATENCY = 1_000_000
_MOST_BANDWIDTH = 1e6


@dataclass(frozen=True, kw_only=True)
class MemoryTiming:
    """Latency and bandwidth of the memory; the defaults are those of a run."""

    read_latency: int = 100
    """Cycles from a read request to its first beat."""
    write_latency: int = 20
    """Cycles from a burst's last beat to its response."""
    bandwidth: float = 1.0
    """Beats per cycle, reads and writes together; 0: one beat per cycle in each direction."""
    _MIN_BANDWIDTH: ClassVar[float] = 1e-24
    """Below it, the forecast's times exceed what floats can add."""

    def __post_init__(self) -> None:
        for name, cycles in (("read_latency", self.read_latency), ("write_latency", self.write_latency)):
            if not 0 <= cycles <= _LONGEST_LATENCY:
                raise UsageError(f"memory {name} must be from 0 to {_LONGEST_LATENCY:,} cycles, not {cycles:,}")
        if self.bandwidth != 0 and not self._MIN_BANDWIDTH <= self.bandwidth <= _MOST_BANDWIDTH:
            limits = f"0, or from {self._MIN_BANDWIDTH:g} to {_MOST_BANDWIDTH:,.0f} beats per cycle"
            raise UsageError(f"memory bandwidth must be {limits}, not {self.bandwidth:g}")

    @property
    def beats_per_cycle(self) -> float:
        """Beats per cycle, reads and writes together."""
        return min(self.bandwidth, 2.0) if self.bandwidth > 0 else 2.0


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


def combined_program(programs: Sequence[Program]) -> Program:
    """The instructions, layers and tensors of all programs, in the order of the regions; a single program is unchanged.

    A tensor that one region passes to another appears once, in the region that produces it.
    """
    if len(programs) == 1:
        return programs[0]
    layers: list[Layer] = []
    provenance: list[Provenance] = []
    tensors: dict[str, TensorBuffer] = {}
    made = {p.name for program in programs for p in program.tensors if p.role is not Role.INPUT}
    for program in programs:
        first = len(layers)
        provenance += [replace(p, layer=p.layer + first if p.layer >= 0 else p.layer) for p in program.provenance]
        layers += program.layers
        tensors |= {p.name: p for p in program.tensors if p.role is not Role.INPUT or p.name not in made}
    return replace(
        programs[0],
        instructions=tuple(i for program in programs for i in program.instructions),
        provenance=tuple(provenance),
        layers=tuple(layers),
        tensors=tuple(tensors.values()),
        residences=tuple(r for program in programs for r in program.residences),
        # Their instructions are renumbered; comparisons use the programs of the regions.
        local_tensors=(),
        local_results=(),
        image=b"".join(program.image for program in programs),
        memory_words=sum(program.memory_words for program in programs),
        predicted_cycles=sum(program.predicted_cycles for program in programs),
    )
