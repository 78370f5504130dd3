"""Estimate a design in an open cell library; that of a preset is recorded: `python -m intloom.hw.asic nano`."""

import argparse
import sys
from pathlib import Path

from intloom.common.errors import IntloomError
from intloom.hw.asic.flow import estimate
from intloom.hw.asic.table import PAGE, content, path_row, record, size_row, update
from intloom.hw.options import add_hardware, hardware
from intloom.hw.spec.params import PRESETS, preset_name
from intloom.hw.verilog import generate_verilog_with_macros

DOCS = Path("docs")


def _tell(step: str) -> None:
    print(step, flush=True)


def main() -> int:
    """Run the flow for the parameters on the command line; returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m intloom.hw.asic", description=__doc__)
    add_hardware(parser, "nano")
    parser.add_argument("--output", type=Path, default=Path("out/asic"), help="folder for netlists and reports")
    options = parser.parse_args()
    try:
        params = hardware(options)
        name = preset_name(params)
        _tell("writing Verilog")
        verilog = generate_verilog_with_macros(params)
        result = estimate(verilog, options.output / name, _tell)
    except IntloomError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    measured = record(result)
    print(size_row(name, measured))
    print(path_row(name, measured["path"]))
    if name in PRESETS and (DOCS / PAGE).exists():
        update(DOCS, name, measured, content(DOCS.resolve().parent, verilog))
    return 0


if __name__ == "__main__":
    sys.exit(main())
