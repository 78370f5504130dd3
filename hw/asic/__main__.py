"""Estimate a preset in an open standard cell library and record it in the manual: `python -m intloom.hw.asic nano`."""

import argparse
import sys
from pathlib import Path

from intloom.common.errors import IntloomError
from intloom.hw.asic.flow import estimate
from intloom.hw.asic.table import PAGE, path_row, record, size_row, update
from intloom.hw.spec.params import preset
from intloom.hw.verilog import generate_verilog_with_macros

DOCS = Path("docs")


def _tell(step: str) -> None:
    print(step, flush=True)


def main() -> int:
    """Run the flow for the preset on the command line; returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m intloom.hw.asic", description=__doc__)
    parser.add_argument("preset", nargs="?", default="nano", help="name of a preset")
    parser.add_argument("--output", type=Path, default=Path("out/asic"), help="folder for netlists and reports")
    options = parser.parse_args()
    try:
        _tell("writing Verilog")
        verilog = generate_verilog_with_macros(preset(options.preset))
        result = estimate(verilog, options.output / options.preset, _tell)
    except IntloomError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    measured = record(result)
    print(size_row(options.preset, measured))
    print(path_row(options.preset, measured["path"]))
    if (DOCS / PAGE).exists():
        update(DOCS, options.preset, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
