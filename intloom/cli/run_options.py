"""Options of `intloom run`, and the checks of their combinations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from intloom.cli.options import Dims, FieldOptions, check_least, choice
from intloom.common.errors import UsageError
from intloom.files import check_folder
from intloom.sim.backend import BACKENDS, BackendKind, backend_kind
from intloom.sim.board.backend import BoardBackend
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.toolchain import require_wave_library

if TYPE_CHECKING:
    BackendName = str
else:
    BackendName = choice("BackendName", BACKENDS)


class Kernels(StrEnum):
    """Kernels that run a TFLite file as it is."""

    LITERT = "litert"
    TFLITE_MICRO = "tflite-micro"


MemoryFields = Annotated[
    MemorySettings,
    FieldOptions(
        {
            "read_latency": typer.Option("--latency", metavar="CYCLES", help="RTL: memory read latency."),
            "bandwidth": typer.Option(
                metavar="BEATS", help="RTL: beats per cycle, reads and writes together; 0 is unlimited."
            ),
            "stall_permille": typer.Option("--stalls", metavar="N", help="RTL: probability of a bus stall, in 1/1000."),
        }
    ),
]
RtlFields = Annotated[
    RtlOptions,
    FieldOptions(
        {
            "memory": MemoryFields,
            "limit": typer.Option(metavar="CYCLES", help="RTL: cycle limit; above it, an error."),
            "verilog": Annotated[Path | None, typer.Option(metavar="FILE", help="RTL: simulate this npu.v.")],
            "jobs": typer.Option(
                metavar="N", help="RTL: parallel simulations, of segments of the program or, with --layers, of blocks."
            ),
            "dask": typer.Option(metavar="ADDRESS", help="RTL: simulate the segments on this Dask cluster."),
        }
    ),
]


@dataclass(frozen=True, kw_only=True)
class WaveOptions:
    """Waves of a window of cycles."""

    folder: Annotated[
        Path | None,
        typer.Option(
            "--waves",
            metavar="DIR",
            help="RTL: waves of a window: around the first wrong write, else of the first cycles.",
        ),
    ] = None
    cycles: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="With --waves: the window, in cycles from the start.")
    ] = None
    from_layer: Annotated[
        str | None, typer.Option(metavar="LAYER", help="With --waves: the window begins where this layer begins.")
    ] = None

    @property
    def window(self) -> tuple[int, int] | None:
        """First and last cycle that --cycles names."""
        if self.cycles is None:
            return None
        first, _, last = self.cycles.partition(":")
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise UsageError(f"--cycles must be FIRST:LAST, such as 1000:3000, not {self.cycles!r}")
        return int(first), int(last)


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """Selection of layers that run separately."""

    layers: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="RTL: run only layers such as model.4.*, each block separately."),
    ] = None
    tile: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --layers: run tile N of each, instruction by instruction."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """All options of a run."""

    backend: Annotated[BackendName, typer.Option(help="Backend.")] = "rtl"
    board: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the board at ADDRESS, see docs/boards.md.")
    ] = None
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[NAME=]FILE",
            help=".npy, .npz, PNG or JPEG. Default: seeded image. Repeatable.",
        ),
    ] = None
    frames: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Run every file of a folder, or every image of a .npy, and tell the frame rate."
        ),
    ] = None
    check: Annotated[bool, typer.Option("--check", help="Compare with the golden model and onnxruntime.")] = False
    match_original: Annotated[
        bool, typer.Option("--match-original", help="With --check: a difference from the file itself is an error too.")
    ] = False
    reference: Annotated[
        Kernels, typer.Option(help="With --check, of a TFLite file: the kernels that the file itself is run with.")
    ] = Kernels.LITERT
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUNDIR", help="Folder for outputs and record.")
    ] = None
    model: Annotated[Path | None, typer.Option(metavar="MODEL.onnx", help="Model. Default: PROGRAM.loom.onnx.")] = None
    dim: Dims = None
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of the input and of memory stalls.")] = 0
    technology: Annotated[
        str | None, typer.Option(metavar="NAME|FILE.toml", help="Estimate the energy; see intloom explore.")
    ] = None
    rtl: RtlFields
    waves: WaveOptions
    part: LayerOptions

    @property
    def backend_name(self) -> str:
        """Name of the selected backend; that of a board has its address."""
        return f"{BoardBackend.name}:{self.board or ''}" if self.on_board else self.backend

    @property
    def on_board(self) -> bool:
        """Whether the program runs on a board."""
        return self.board is not None or self.backend == BoardBackend.name

    @property
    def kind(self) -> BackendKind:
        """The selected backend."""
        return backend_kind(self.backend_name)

    def rtl_options(self) -> RtlOptions:
        """How the RTL is simulated."""
        return replace(
            self.rtl,
            memory=replace(self.rtl.memory, seed=self.seed + 1),
            # With --layers, blocks run in parallel instead.
            jobs=self.rtl.jobs if self.part.layers is None else 1,
        )


def check_options(run: RunOptions) -> None:
    """Reject invalid values and combinations."""
    check_least("--seed", run.seed, 0)
    check_least("--limit", run.rtl.limit, 1)
    _check_memory(run)
    _check_layers(run)
    _check_jobs(run)
    _check_waves(run)
    _check_frames(run)
    if run.match_original and not run.check:
        raise UsageError("--match-original needs --check; add it")
    if run.reference is not Kernels.LITERT and not run.check:
        raise UsageError(f"--reference {run.reference} needs --check; add it")
    for what, folder in (("run folder", run.output), ("folder for waves", run.waves.folder)):
        if folder is not None:
            check_folder(folder, what)


def _check_memory(run: RunOptions) -> None:
    """Reject options of the simulated memory for a backend that has none."""
    memory, usual = run.rtl.memory, MemorySettings()
    given = {
        "--latency": memory.read_latency != usual.read_latency,
        "--bandwidth": memory.bandwidth != usual.bandwidth,
        "--stalls": memory.stall_permille != usual.stall_permille,
        "--limit": run.rtl.limit is not None,
    }
    first = next((name for name, is_given in given.items() if is_given), None)
    if first is not None and not run.kind.capabilities.memory_timing:
        raise UsageError(f"{first} needs simulated memory, not --backend {run.backend}; use --backend rtl")


def _check_layers(run: RunOptions) -> None:
    """Reject options that contradict a run of selected layers."""
    if run.part.tile is not None and run.part.layers is None:
        raise UsageError("--tile needs --layers; give the layers whose tile runs")
    if run.part.layers is not None and not run.kind.capabilities.layer_jobs:
        raise UsageError(f"--layers runs in RTL only, not with --backend {run.backend}; use --backend rtl")


def _check_jobs(run: RunOptions) -> None:
    """Reject options that contradict parallel simulations."""
    rtl, layers = run.rtl, run.part.layers
    if rtl.dask is not None and (rtl.jobs < 2 or layers is not None):
        raise UsageError("--dask distributes the segments of a whole program; add --jobs 2 or more, remove --layers")
    if rtl.jobs < 2 or layers is not None:
        return
    if not run.kind.capabilities.layer_jobs:
        raise UsageError(f"--jobs runs in RTL only, not with --backend {run.backend}; use --backend rtl")
    if rtl.memory.stall_permille:
        raise UsageError(
            "--jobs needs a memory without --stalls, which depend on all earlier cycles; remove one of them"
        )


def _check_frames(run: RunOptions) -> None:
    """Reject options of one run for a stream of frames."""
    given = {
        "--input": run.inputs,
        "--layers": run.part.layers,
        "--waves": run.waves.folder,
        "--match-original": run.match_original,
    }
    if run.frames is not None and (other := next((name for name, value in given.items() if value), None)):
        raise UsageError(f"{other} is for a single run, --frames runs many; remove one of them")


def _check_waves(run: RunOptions) -> None:
    """Reject --waves for runs that cannot record waves, before anything runs."""
    waves = run.waves
    window = next((o for o, v in (("--cycles", waves.cycles), ("--from-layer", waves.from_layer)) if v), None)
    if waves.folder is None:
        if window is not None:
            raise UsageError(f"{window} chooses the window of --waves; add --waves DIR")
        return
    if not run.kind.capabilities.waves:
        raise UsageError(f"--waves needs the RTL, not --backend {run.backend}; use --backend rtl")
    if run.part.layers is not None and waves.from_layer is not None:
        raise UsageError("--waves with --layers records each block; remove --from-layer")
    _ = waves.window
    require_wave_library()
