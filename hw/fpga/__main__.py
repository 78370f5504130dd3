"""Place and route a preset and record the result in the manual: `python -m intloom.hw.fpga small`."""

import argparse
import sys
from pathlib import Path

from intloom.common.errors import IntloomError
from intloom.hw.fpga.flow import DEVICES, PRESET_DEVICES, Flow, pack, place_and_route
from intloom.hw.fpga.report import Resource, TooLargeError
from intloom.hw.fpga.table import PAGE, path_row, record, row, size_record, update, update_size
from intloom.hw.spec.params import preset

DOCS = Path("docs")


def _print(step: str) -> None:
    print(step, flush=True)


def _report(error: IntloomError) -> int:
    print(f"error: {error}", file=sys.stderr)
    return int(error.exit_code)


def _note_size(name: str, device: str, used: dict[str, Resource]) -> None:
    print(row(name, size_record(device, used)))
    if (DOCS / PAGE).exists():
        update_size(DOCS, name, device, used)


def main() -> int:
    """Run the flow for the preset on the command line; returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m intloom.hw.fpga", description=__doc__)
    parser.add_argument("preset", nargs="?", default="small", help="name of a preset")
    parser.add_argument("--device", choices=DEVICES, help="ECP5 device; each preset has a default")
    parser.add_argument("--output", type=Path, default=Path("out/fpga"), help="folder for netlists, logs and reports")
    parser.add_argument("--seed", type=int, default=1, help="seed of the placer")
    parser.add_argument("--fit", action="store_true", help="synthesize and pack only: report the cell counts")
    options = parser.parse_args()
    flow = Flow(options.output / options.preset, _print, options.seed)
    try:
        params = preset(options.preset)
        device = DEVICES[options.device or PRESET_DEVICES[options.preset]]
        if options.fit:
            _note_size(options.preset, device.name, pack(params, device, flow))
            return 0
        result = place_and_route(params, device, flow)
    except TooLargeError as error:
        _note_size(options.preset, error.device, error.used)
        return _report(error)
    except IntloomError as error:
        return _report(error)
    measured = record(result, {})
    print(row(options.preset, measured))
    print(path_row(options.preset, measured["paths"][-1]))
    if (DOCS / PAGE).exists():
        update(DOCS, options.preset, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
