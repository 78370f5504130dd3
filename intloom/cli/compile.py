"""`intloom compile`: quantized model to program."""

import csv
import io
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import Dims, parse_dims, subcommand
from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.forecast import bound
from intloom.compiler.program.memory_map import peak_words
from intloom.compiler.program.program import array_use
from intloom.compiler.schedule import DEFAULT_MEMORY
from intloom.exploration.device import clock_of
from intloom.files import check_output, write_text
from intloom.flow.bundle import Bundle, model_beside
from intloom.flow.compiling import compile_model, store
from intloom.flow.host_share import host_share
from intloom.flow.record import hardware_name
from intloom.report.memory_page import write_memory_page
from intloom.sim.rtl.job import MemorySettings

_HELP = """Compile a quantized model into a program for the accelerator.

A copy of the model is written to PROGRAM.loom.onnx. Checks and host parts need it.

Examples:

[bold]intloom compile yolov8n.q.onnx -o yolov8n.loom[/bold]

[bold]intloom compile yolov8n.q.onnx -o yolov8n.loom --map memory.html[/bold]

[bold]intloom compile yolov8n.q.onnx --bandwidth 0.25 --latency 400 --effort 2 -o yolov8n.loom[/bold]

[bold]intloom compile yolov8n.q.onnx --config my.toml --match exact -o yolov8n.loom --json[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    output: Annotated[Path, typer.Option("-o", "--output", metavar="PROGRAM.loom", help="Output file.")]
    hardware: HardwareOptions
    dim: Dims = None
    keep_intermediates: Annotated[
        bool,
        typer.Option(
            "--keep-intermediates", help="Store every tensor to memory, so that runs can compare every layer."
        ),
    ] = False
    effort: Annotated[
        int,
        typer.Option(
            min=0,
            max=3,
            help="How many fused schedules the compiler tries, 1 to 3; 0: none, every tensor goes through DRAM.",
        ),
    ] = 1
    latency: Annotated[
        int, typer.Option(metavar="CYCLES", min=0, help="Memory read latency that the schedule is made for.")
    ] = DEFAULT_MEMORY.read_latency
    bandwidth: Annotated[
        float,
        typer.Option(
            metavar="BEATS",
            min=0,
            help="Beats per cycle that the schedule is made for, reads and writes together; 0: one in each direction.",
        ),
    ] = DEFAULT_MEMORY.bandwidth
    memory_map: Annotated[
        Path | None, typer.Option("--map", metavar="FILE.html", help="Write a drawing of the memory use over time.")
    ] = None
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write the totals as a table of one row.")
    ] = None


@subcommand("compile", _HELP)
def _run(
    terminal: Terminal,
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="A quantized model.")],
    given: _Options,
) -> None:
    check_output(given.output, model)
    if given.memory_map is not None:
        check_output(given.memory_map, model, given.output, model_beside(given.output))
    if given.summary is not None:
        check_output(given.summary, model, given.output, model_beside(given.output))
    params = given.hardware.params
    started = time.perf_counter()
    with terminal.progress() as tell:
        bundle = compile_model(
            model,
            params,
            dims=parse_dims(given.dim),
            keep_intermediates=given.keep_intermediates,
            effort=given.effort,
            memory=MemorySettings(read_latency=given.latency, bandwidth=given.bandwidth).timing,
            progress=tell,
        )
        seconds = time.perf_counter() - started
        store(bundle, given.output)
    if given.memory_map is not None:
        write_memory_page(bundle.programs, given.memory_map)
    summary = {**summarize(bundle), "seconds": seconds}
    if given.summary is not None:
        write_text(given.summary, summary_csv(summary))
    if terminal.as_json:
        terminal.json({"path": str(given.output), **summary})
        return
    for warning in bundle.need_model("a list of warnings").warnings:
        terminal.say(warning, label="warning", color="yellow")
    _show(terminal, given.output, summary)


_UNITS = {"array": "array", "vector": "vector unit", "bus": "bus"}


def summary_csv(summary: Mapping[str, Any]) -> str:
    """The totals as a table of one row."""
    flat: dict[str, Any] = {}
    for key, value in summary.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{name}": part for name, part in value.items()}
        elif not isinstance(value, list):
            flat[key] = value
    text = io.StringIO()
    table = csv.DictWriter(text, flat, lineterminator="\n")
    table.writeheader()
    table.writerow(flat)
    return text.getvalue()


def summarize(bundle: Bundle) -> dict[str, Any]:
    """Result of a compilation as plain values."""
    program, host = bundle.program, host_share(bundle.need_model("the share of the host"))
    clock = clock_of(program.params.macs)
    seconds = program.predicted_cycles / (clock.mhz * 1e6)
    bounds = [bound(p) for p in bundle.programs]
    totals = {name: sum(getattr(b, name) for b in bounds) for name in _UNITS}
    largest = max(totals, key=lambda name: totals[name])
    return {
        "name": program.name,
        "hardware": hardware_name(program),
        "match": str(program.params.match),
        "instructions": len(program.instructions),
        "predicted_cycles": program.predicted_cycles,
        "clock_mhz": clock.mhz,
        "clock_source": clock.source,
        "milliseconds": 1000 * seconds,
        "frames_per_second": 1 / seconds,
        "host": asdict(host),
        "memory": {"latency": program.memory.read_latency, "bandwidth": program.memory.bandwidth},
        "bound": {"cycles": sum(b.cycles for b in bounds), "largest": largest, **totals},
        "macs": program.macs,
        "vector_macs": program.vector_macs,
        "predicted_mac_use": array_use(program.macs, program.predicted_cycles, program.params),
        "dram_bytes": sum(layer.dram_words for layer in program.layers) * program.params.word_bytes,
        "regions": len(bundle.programs),
        "scratch_peak_bytes": max(peak_words(p, Memory.SCRATCH) for p in bundle.programs) * program.params.word_bytes,
        "constant_bytes": len(program.image),
        "memory_bytes": program.memory_words * program.params.word_bytes,
        "layers": [
            {
                "name": layer.name,
                "op": layer.op,
                "macs": layer.macs,
                "vector_macs": layer.vector_macs,
                "predicted_cycles": layer.predicted_cycles,
                "predicted_mac_use": array_use(layer.macs, layer.predicted_cycles, program.params),
                "dram_bytes": layer.dram_words * program.params.word_bytes,
            }
            for layer in program.layers
        ],
    }


def _show(terminal: Terminal, output: Path, summary: dict[str, Any]) -> None:
    if terminal.verbosity > 0:
        table = new_table("layer", "kind", ">MACs", ">cycles", ">utilization", ">memory bytes")
        for layer in summary["layers"]:
            use = f"{100 * layer['predicted_mac_use']:.1f} %" if layer["macs"] else ""
            products = f"{layer['macs'] + layer['vector_macs']:,}"
            cells = [f"{layer[k]:,}" for k in ("predicted_cycles", "dram_bytes")]
            table.add_row(layer["name"], layer["op"], products, cells[0], use, cells[1])
        terminal.err.print(table)
    terminal.say(
        f"{output}: {summary['instructions']:,} instructions for {summary['hardware']}, "
        f"{summary['predicted_cycles']:,} cycles predicted, "
        f"{summary['predicted_cycles'] / (summary['bound']['cycles'] or 1):.2f} times the bound by the "
        f"{_UNITS[summary['bound']['largest']]}, "
        f"array utilization {100 * summary['predicted_mac_use']:.1f} %, "
        f"{summary['dram_bytes'] / 1e6:.2f} MB of memory traffic, "
        f"{summary['scratch_peak_bytes'] / 1024:.0f} KiB of scratchpad at the peak, "
        f"compiled in {summary['seconds']:.2f} s"
    )
    host = summary["host"]
    regions = f" between {summary['regions']} regions" if summary["regions"] > 1 else ""
    terminal.say(
        f"host: {host['nodes']} of {host['all_nodes']} nodes with {100 * host['share']:.1f} % of the multiplications"
        f"{regions}; accelerator: {summary['milliseconds']:.2f} ms, {summary['frames_per_second']:.1f} frames/s at "
        f"{summary['clock_mhz']:g} MHz, {summary['clock_source']}; {summary['memory_bytes'] / 1e6:.2f} MB of memory, "
        f"{summary['constant_bytes'] / 1e6:.2f} MB of it constants"
    )
