"""Place and route a preset and note the outcome in the manual: `python -m hw.fpga small`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hw.spec.errors import IntloomError
from hw.spec.params import preset

from .flow import DEVICES, PRESET_DEVICES, place_and_route
from .table import path_row, row, update

PAGE = Path("docs/fpga.md")


def _tell(step: str) -> None:
    print(step, flush=True)


def main() -> int:
    """Run the flow for the preset on the command line; returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m hw.fpga", description=__doc__)
    parser.add_argument("preset", nargs="?", default="small", help="name of a preset")
    parser.add_argument("--device", choices=DEVICES, help="ECP5 device; each preset has a default")
    parser.add_argument("--output", type=Path, default=Path("out/fpga"), help="folder for netlists, logs and reports")
    parser.add_argument("--seed", type=int, default=1, help="where placement begins")
    options = parser.parse_args()
    try:
        params = preset(options.preset)
        device = DEVICES[options.device or PRESET_DEVICES[options.preset]]
        result = place_and_route(params, device, options.output / options.preset, _tell, options.seed)
    except IntloomError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(row(options.preset, result))
    print(path_row(options.preset, result))
    if PAGE.parent.is_dir():
        update(PAGE, options.preset, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
