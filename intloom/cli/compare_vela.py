"""`intloom compare-vela`: a TFLite file here and in Arm's Vela."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from intloom.cli.compile import summarize
from intloom.cli.console import Terminal, new_table
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import subcommand
from intloom.compiler.program.program import MemoryTiming
from intloom.flow.compiling import compile_model
from intloom.flow.inputs import read_inputs
from intloom.flow.running import execute, open_backend
from intloom.flow.vela import check_tool, estimate, peers

_HELP = """Compare a TFLite file on this accelerator with what Arm's Vela estimates for the Ethos-U.

The Ethos-U have as many multipliers as the array, and the same memory: latency, and bytes per cycle. Vela's numbers are
estimates of its own; ours are the forecast or, with --rtl, counted by the hardware in simulation.

Example: [bold]intloom compare-vela yolov8n_full_integer_quant.tflite --preset base --rtl[/bold]
"""


@subcommand("compare-vela", _HELP)
def _run(
    terminal: Terminal,
    model: Annotated[Path, typer.Argument(metavar="MODEL.tflite", help="An int8 model.")],
    hardware: HardwareOptions,
    rtl: Annotated[bool, typer.Option("--rtl", help="Run the program in RTL, and compare its bytes.")] = False,
    cache: Annotated[
        int, typer.Option(metavar="KIB", min=16, help="SRAM of U65 and U85, as in Vela's own modes.")
    ] = 384,
) -> None:
    check_tool()
    params, memory = hardware.params, MemoryTiming()
    with terminal.progress() as tell:
        bundle = compile_model(model, params, memory=memory, progress=tell)
    summary, multipliers = summarize(bundle), params.rows * params.cols
    rows = [_row("forecast", summary, multipliers, summary["predicted_cycles"])]
    if rtl:
        feeds = read_inputs([], bundle.inputs, 0)
        result = execute(bundle, open_backend("rtl", bundle), feeds, check=True)
        differing = sum(c.mismatches for c in result.checks)
        rows.append(_row(f"RTL, {differing} bytes differ", summary, multipliers, result.cycles))
    for ethos in peers(multipliers):
        made = estimate(model, ethos, memory, cache)
        rows.append({"source": "Vela's estimate", "hardware": ethos.name, **made.to_dict()})
    table = new_table("", "hardware", ">multipliers", ">cycles", ">use", ">DRAM MB", ">weights MB")
    for row in rows:
        table.add_row(*_cells(row))
    terminal.give({"model": str(model), "rows": rows}, lambda: terminal.table(table))


def _row(source: str, summary: dict[str, Any], multipliers: int, cycles: int) -> dict[str, Any]:
    return {
        "source": source,
        "hardware": summary["hardware"],
        "multipliers": multipliers,
        "cycles": cycles,
        "use": summary["macs"] / (cycles * multipliers),
        "dram_bytes": summary["dram_bytes"],
        "weight_bytes": summary["constant_bytes"],
    }


def _cells(row: dict[str, Any]) -> Iterable[str]:
    return (
        row["source"],
        row["hardware"],
        str(row["multipliers"]),
        f"{row['cycles']:,}",
        f"{100 * row['use']:.1f} %",
        f"{row['dram_bytes'] / 1e6:.2f}",
        f"{row['weight_bytes'] / 1e6:.2f}",
    )
