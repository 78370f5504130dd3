"""Place and route a preset and note the outcome in the manual: `python -m intloom.hw.fpga small`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from intloom.common.errors import IntloomError
from intloom.hw.fpga.flow import DEVICES, PRESET_DEVICES, Flow, pack, place_and_route
from intloom.hw.fpga.report import Resource, TooLargeError
from intloom.hw.fpga.table import path_row, row, size_row, update, update_size
from intloom.hw.spec.params import preset

PAGE = Path("docs/fpga.md")


def _tell(step: str) -> None:
    print(step, flush=True)


def _refuse(error: IntloomError) -> int:
    print(f"error: {error}", file=sys.stderr)
    return int(error.exit_code)


def _note_size(name: str, device: str, used: dict[str, Resource]) -> None:
    print(size_row(name, device, used))
    if PAGE.parent.is_dir():
        update_size(PAGE, name, device, used)


def main() -> int:
    """Run the flow for the preset on the command line; returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m intloom.hw.fpga", description=__doc__)
    parser.add_argument("preset", nargs="?", default="small", help="name of a preset")
    parser.add_argument("--device", choices=DEVICES, help="ECP5 device; each preset has a default")
    parser.add_argument("--output", type=Path, default=Path("out/fpga"), help="folder for netlists, logs and reports")
    parser.add_argument("--seed", type=int, default=1, help="where placement begins")
    parser.add_argument("--fit", action="store_true", help="only synthesize and count: does it fit?")
    options = parser.parse_args()
    flow = Flow(options.output / options.preset, _tell)
    try:
        params = preset(options.preset)
        device = DEVICES[options.device or PRESET_DEVICES[options.preset]]
        if options.fit:
            _note_size(options.preset, device.name, pack(params, device, flow))
            return 0
        result = place_and_route(params, device, flow, options.seed)
    except TooLargeError as error:
        _note_size(options.preset, error.device, error.used)
        return _refuse(error)
    except IntloomError as error:
        return _refuse(error)
    print(row(options.preset, result))
    print(path_row(options.preset, result))
    if PAGE.parent.is_dir():
        update(PAGE, options.preset, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
