"""Options of `intloom run`, and the checks of their combinations."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from intloom.cli.options import Dims, choice
from intloom.common.errors import UsageError
from intloom.sim.backend import BACKENDS, BackendKind, backend_kind
from intloom.sim.board.backend import BoardBackend
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import BENCHES, bench_kind

if TYPE_CHECKING:
    BackendName = str
    BenchName = str
else:
    BackendName, BenchName = choice("BackendName", BACKENDS), choice("BenchName", BENCHES)


class Kernels(StrEnum):
    """Kernels that run a TFLite file as it is."""

    LITERT = "litert"
    TFLITE_MICRO = "tflite-micro"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Backend, inputs, checks and output folder of a run."""

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


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """Behavior of the simulated memory, and the cycle limit."""

    latency: Annotated[int, typer.Option(metavar="CYCLES", help="RTL: memory read latency.")] = (
        MemorySettings.read_latency
    )
    bandwidth: Annotated[
        float, typer.Option(metavar="BEATS", help="RTL: beats per cycle, reads and writes together; 0 is unlimited.")
    ] = MemorySettings.bandwidth
    stalls: Annotated[int, typer.Option(metavar="N", help="RTL: probability of a bus stall, in 1/1000.")] = 0
    limit: Annotated[int | None, typer.Option(metavar="CYCLES", help="RTL: cycle limit; above it, an error.")] = None

    def settings(self, seed: int) -> MemorySettings:
        """Settings of the memory model."""
        return MemorySettings(
            read_latency=self.latency, bandwidth=self.bandwidth, stall_permille=self.stalls, seed=seed
        )


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    """Simulator and Verilog source."""

    verilog: Annotated[Path | None, typer.Option(metavar="FILE", help="RTL: simulate this npu.v.")] = None
    bench: Annotated[
        BenchName,
        typer.Option(help="RTL: detailed checks every bus cycle; icarus uses Icarus Verilog."),
    ] = "fast"
    waves: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="RTL: waves around the first wrong write; with --bench detailed, of all.",
        ),
    ] = None

    jobs: Annotated[
        int,
        typer.Option(
            metavar="N", help="RTL: parallel simulations, of segments of the program or, with --layers, of blocks."
        ),
    ] = 1
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="RTL: simulate the segments on this Dask cluster.")
    ] = None

    @property
    def waves_of_whole_run(self) -> Path | None:
        """The folder for waves, if the bench records those of the whole run."""
        return self.waves if bench_kind(self.bench).waves == "whole run" else None


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


def check_memory(run: RunOptions, memory: MemoryOptions) -> None:
    """Reject options of the simulated memory for a backend that has none."""
    given = [f"--{f.name}" for f in fields(memory) if getattr(memory, f.name) != f.default]
    if given and not run.kind.capabilities.memory_timing:
        raise UsageError(f"{given[0]} needs simulated memory, not --backend {run.backend}; use --backend rtl")


def check_layers(run: RunOptions, part: LayerOptions) -> None:
    """Reject options that contradict a run of selected layers."""
    if part.tile is not None and part.layers is None:
        raise UsageError("--tile needs --layers; give the layers whose tile runs")
    if part.layers is not None and not run.kind.capabilities.layer_jobs:
        raise UsageError(f"--layers runs in RTL only, not with --backend {run.backend}; use --backend rtl")
    if part.layers is not None and run.output is not None:
        raise UsageError("-o and --layers exclude each other, because -o stores whole runs; remove one of them")


def check_jobs(run: RunOptions, memory: MemoryOptions, simulator: SimulatorOptions, part: LayerOptions) -> None:
    """Reject options that contradict parallel simulations."""
    if simulator.dask is not None and (simulator.jobs < 2 or part.layers is not None):
        raise UsageError("--dask distributes the segments of a whole program; add --jobs 2 or more, remove --layers")
    if simulator.jobs < 2 or part.layers is not None:
        return
    if not run.kind.capabilities.layer_jobs:
        raise UsageError(f"--jobs runs in RTL only, not with --backend {run.backend}; use --backend rtl")
    if simulator.bench != "fast":
        raise UsageError(f"--jobs needs --bench fast, not {simulator.bench}; remove --jobs or --bench")
    if memory.stalls:
        raise UsageError(
            "--jobs needs a memory without --stalls, which depend on all earlier cycles; remove one of them"
        )


def check_waves(run: RunOptions, simulator: SimulatorOptions, part: LayerOptions) -> None:
    """Reject --waves for runs that cannot record waves."""
    if simulator.waves is not None and not run.kind.capabilities.waves:
        raise UsageError(f"--waves needs the RTL, not --backend {run.backend}; use --backend rtl")
    if simulator.waves is not None and (part.layers is not None or bench_kind(simulator.bench).waves is None):
        raise UsageError("--waves needs a whole run on the fast or detailed bench; remove --layers or change --bench")
