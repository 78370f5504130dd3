"""Every timing diagram of the manual: its name, its simulation, its rows."""

from collections.abc import Callable
from pathlib import Path

from tools.timing_diagrams import mac, programs, scratchpad
from tools.timing_diagrams.diagram import Diagram
from tools.timing_diagrams.recording import Recording

FOLDER = Path(__file__).parents[2] / "docs" / "timing"

DIAGRAMS: dict[str, tuple[Callable[[], Recording], Diagram]] = {
    "weight-swap": (mac.two_strips, mac.WEIGHTS),
    "accumulator-banks": (mac.two_strips, mac.BANKS),
    "epilogue": (mac.two_pixels, mac.EPILOGUE),
    "scratchpad-arbitration": (scratchpad.arbitration, scratchpad.ARBITRATION),
    "load-outstanding": (programs.load_then_store, programs.SEVERAL_OUTSTANDING),
    "instruction-issue": (programs.load_then_store, programs.ISSUE),
    "fault": (programs.fault_then_reset, programs.FAULT),
    "soft-reset": (programs.fault_then_reset, programs.RESET),
}


def source_path(name: str) -> Path:
    """The diagram's WaveDrom source file."""
    return FOLDER / f"{name}.json"


def source_text(name: str) -> str:
    """The diagram's source from a fresh simulation."""
    recorded, diagram = DIAGRAMS[name]
    return diagram.text(recorded())
