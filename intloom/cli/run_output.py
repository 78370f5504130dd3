"""What `intloom run` prints: progress, and the summary of the record."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from intloom.cli.console import Tell, Terminal, new_table
from intloom.sim.checks import ONNXRUNTIME
from intloom.sim.result import Progress, ProgressCallback

_SHOWN = 5
"""Tensors that differ and are listed without -v."""
_CAUSES = 2
"""Stall causes that are listed of each block."""


def show_slices(terminal: Terminal, record: Mapping[str, Any], kind: str) -> None:
    """Print a table of blocks or tiles that ran separately."""
    table = new_table(kind, ">cycles", ">utilization", "stalls", ">bytes compared", "result", "")
    for row in record["slices"]:
        result = Text(row["first"], "red") if row["mismatches"] else Text("equal", "green")
        use, kept = f"{100 * row['mac_use']:.1f} %", "from the cache" if row["cached"] else ""
        shares = [(cause, count / row["cycles"]) for cause, count in row["stalls"].items() if cause.startswith("MAC_")]
        stalls = ", ".join(f"{cause} {share:.0%}" for cause, share in shares[:_CAUSES] if share)
        table.add_row(row["name"], f"{row['cycles']:,}", use, stalls, f"{row['compared_bytes']:,}", result, kept)
    terminal.table(table)


def watcher(tell: Tell, steps: str = "cycles") -> ProgressCallback:
    """Progress callback that shows layers, and cycles or other `steps` with rate and remaining time."""
    # The first report comes after Verilog generation and the build of the simulator.
    tell("prepare", 0, 1)

    def watch(progress: Progress) -> None:
        tell("prepare", 1, 1)
        tell("layers", progress.layers_done, progress.layers)
        tell(steps, progress.cycle, progress.cycle + round(progress.seconds_left * progress.sim_hz))

    return watch


def show_record(terminal: Terminal, record: Mapping[str, Any]) -> None:
    """Print a summary of a run."""
    if terminal.verbosity > 0 and record["cycles"]:
        table = new_table("layer", "kind", ">cycles", ">utilization", ">predicted")
        for layer in record["layers"]:
            use = f"{100 * layer['mac_use']:.1f} %" if layer["macs"] else ""
            table.add_row(layer["name"], layer["op"], f"{layer['cycles']:,}", use, f"{layer['predicted_cycles']:,}")
        terminal.err.print(table)
    if record["cycles"]:
        terminal.say(
            f"{record['cycles']:,} cycles, array utilization {100 * record['mac_use']:.1f} %, "
            f"{record['dram_bytes'] / 1e6:.2f} MB of memory traffic; simulated in {record['wall_s']:.1f} s "
            f"at {record['sim_hz'] / 1e3:,.0f} kHz (build {record['build_s']:.0f} s)"
        )
    else:
        terminal.say(f"{record['backend']}: {record['wall_s']:.2f} s")
    if spent := record["energy"]:
        parts = ", ".join(f"{name} {value:,.1f}" for name, value in spent["microjoules"].items())
        total = sum(spent["microjoules"].values())
        terminal.say(f"{total:,.1f} µJ, estimated: {parts} ({spent['technology']}: {spent['source']})", label="energy")
    against = {c["against"]: 0 for c in record["checks"]}
    for check in record["checks"]:
        against[check["against"]] += check["bytes"]
    wrong = [c for c in record["checks"] if c["mismatches"]]
    for check in wrong if terminal.verbosity > 0 else wrong[:_SHOWN]:
        what = f"{check['tensor']} against {check['against']}"
        terminal.say(f"{what}: {check['mismatches']:,} bytes, {check['first']}", label="differs", color="red")
    if len(wrong) > _SHOWN and terminal.verbosity <= 0:
        terminal.say(f"{len(wrong) - _SHOWN} more tensors (-v lists them)", label="differs", color="red")
    if record["checks"] and not record["mismatches"]:
        equal = ", ".join(f"{n:,} bytes against {name}" for name, n in against.items())
        terminal.say(equal, label="equal", color="green")
    if record["original"] is not None:
        _show_original(terminal, record["original"])


def _show_original(terminal: Terminal, original: Mapping[str, Any]) -> None:
    """Print the distance from the user's file in plain onnxruntime."""
    if original["error"]:
        terminal.say(original["error"], label="original file", color="yellow")
    runtime = original.get("runtime", ONNXRUNTIME)
    if floats := original["float_layers"]:
        terminal.say(f"{runtime} computes {len(floats)} layers of it in float", label="original file")
    if original.get("saturated"):
        text = f"{runtime} saturates sums of products on this processor, which lacks VNNI; docs/numerics.md has more"
        terminal.say(text, label="original file")
    if defined := original.get("defined_layers"):
        text = f"in {runtime}; {len(defined)} operators (averages, Softmax) have an integer form of their own here"
        terminal.say(text, label="original file")
    for output in original["outputs"]:
        share = 100 * output["differing"] / max(1, output["values"])
        steps = "" if output["largest_steps"] is None else f"{output['largest_steps']} steps, "
        text = f"{output['output']}: {share:.3g} % of {output['values']:,} values differ"
        largest = f", by at most {steps}{output['largest']:.3g} in real units" if output["differing"] else ""
        terminal.say(f"{text}{largest}", label="original file")
