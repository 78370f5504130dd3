"""What limits a run, in words, and what to change."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

_PARTIAL, _REST = "PARTIAL", "REST"
_EXPLANATIONS = {
    _PARTIAL: "parts of the array have no channel to work on",
    "NO_INSTRUCTION": "the array has no instruction",
    "WAIT": "the array waits until other units have finished an instruction",
    "MEMORY": "the array waits for grants of the scratchpad or for data",
    "WEIGHTS": "the array waits for weights",
    "ACCUMULATORS": "the array waits until sums are read out",
    _REST: "the program starts and ends",
}
_REMEDIES = {
    _PARTIAL: """Layers whose channels are no multiple of the array's rows and columns leave some of them empty: choose
    hardware with fewer rows or columns, or a network with more channels in the layers named.""",
    "NO_INSTRUCTION": """Other units work meanwhile, or the program begins and ends: look for layers of the vector unit
    in the table, and for loads before the first layer in the timeline.""",
    "WAIT": """Loads, stores or the vector unit are late: compile with the --latency and --bandwidth of the memory, or
    choose hardware with a larger scratchpad (scratch_kib) or more vector lanes (vector_lanes).""",
    "MEMORY": "More scratchpad banks (scratch_banks) reduce conflicts.",
    "WEIGHTS": """The memory delivers weights too slowly, or tiles have fewer pixels than the array has columns: raise
    the bandwidth, compile with the --latency and --bandwidth of the memory, or enlarge the weight memory
    (weight_kib).""",
    "ACCUMULATORS": """Layers with short sums are limited by the readout: choose hardware with more lanes (lanes).""",
    _REST: "The network is short for this hardware; a smaller array loses less.",
}


@dataclass(frozen=True)
class Limit:
    """The largest loss of a run."""

    text: str
    remedy: str


def limiting_cause(record: dict[str, Any]) -> Limit | None:
    """The largest loss of the array's cycles, and the layer with most of it; None where no cycles are counted."""
    cycles = record["cycles"]
    unit = next((u for u in record["units"] if u["name"] == "mac"), None)
    if not cycles or unit is None:
        return None
    useful = min(unit["busy"], record["macs"] / (record["params"]["rows"] * record["params"]["cols"]))
    losses = Counter({cause: count for cause, count in unit["stalls"].items() if cause in _EXPLANATIONS})
    losses[_PARTIAL] = round(unit["busy"] - useful)
    losses[_REST] = max(0, cycles - unit["busy"] - sum(unit["stalls"].values()))
    (cause, lost), *_ = losses.most_common()
    done = f"The array makes useful products in {100 * useful / cycles:.1f} % of the cycles."
    if not lost:
        return Limit(done, "No cycle is lost.")
    layer = _worst_layer(record, cause)
    where = f", most of them in {layer}" if layer else ""
    return Limit(
        f"{done} The largest loss: in {100 * lost / cycles:.1f} % {_EXPLANATIONS[cause]}{where}.",
        _flat(_REMEDIES[cause]),
    )


def _worst_layer(record: dict[str, Any], cause: str) -> str:
    """The layer that loses most cycles to a cause; empty if no layer is known."""
    peak = record["params"]["rows"] * record["params"]["cols"]
    lost = {
        layer["name"]: layer["busy"].get("MAC", 0) - layer["macs"] / peak
        if cause == _PARTIAL
        else layer["stalls"].get(f"MAC_STALL_{cause}", 0)
        for layer in record["layers"]
    }
    name = max(lost, key=lambda layer: lost[layer], default="")
    return name if name and lost[name] > 0 else ""


def _flat(text: str) -> str:
    return " ".join(text.split())
