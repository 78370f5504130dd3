"""Every timing diagram of the manual; `python -m tools.timing_diagrams` writes their WaveDrom sources."""

from collections.abc import Callable
from pathlib import Path

from intloom.common.atomic_write import write_text
from tools.timing_diagrams import mac, programs, scratchpad
from tools.timing_diagrams.diagram import Diagram, Recording

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


def main() -> None:
    """Record and write every diagram."""
    for name in DIAGRAMS:
        path = source_path(name)
        write_text(path, source_text(name))
        print(path)


if __name__ == "__main__":
    main()
