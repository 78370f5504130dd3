"""Place and route a design, or count its cells; a preset's are recorded: `python -m intloom.hw.fpga small`."""

import argparse
import sys
from pathlib import Path

from intloom.common.errors import IntloomError
from intloom.hw.fpga.counts import FAMILIES, count
from intloom.hw.fpga.flow import DEVICES, PRESET_DEVICES, Flow, pack, place_and_route
from intloom.hw.fpga.report import Resource, TooLargeError
from intloom.hw.fpga.table import (
    PAGE,
    content,
    count_row,
    path_row,
    record,
    row,
    size_record,
    update,
    update_count,
    update_size,
)
from intloom.hw.npu import TOP_NAME
from intloom.hw.options import add_hardware, hardware, named_fields
from intloom.hw.spec.params import PRESETS, changed_name, named_changes, preset_name

DOCS = Path("docs")


def _print(step: str) -> None:
    print(step, flush=True)


def _report(error: IntloomError) -> int:
    print(f"error: {error}", file=sys.stderr)
    return int(error.exit_code)


def _note_size(name: str, device: str, used: dict[str, Resource], flow: Flow) -> None:
    print(row(name, size_record(device, used)))
    if _has_row(name):
        update_size(DOCS, name, device, used, _content(flow))


def _content(flow: Flow) -> str:
    """The content of a figure of this layout, from the Verilog that was synthesized."""
    return content(DOCS.resolve().parent, (flow.folder / f"{TOP_NAME}.v").read_text(encoding="utf-8"))


def main() -> int:
    """Run the flow for the parameters on the command line; returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m intloom.hw.fpga", description=__doc__)
    add_hardware(parser, "small")
    parser.add_argument("--device", choices=DEVICES, help="ECP5 device; default: that of the preset, else 85F")
    parser.add_argument("--output", type=Path, default=Path("out/fpga"), help="folder for netlists, logs and reports")
    parser.add_argument("--seed", type=int, default=1, help="seed of the placer")
    parser.add_argument("--fit", action="store_true", help="synthesize and pack only: report the cell counts")
    parser.add_argument("--count", choices=FAMILIES, help="count the cells on another family by Yosys, minutes")
    options = parser.parse_args()
    try:
        params = hardware(options)
    except IntloomError as error:
        return _report(error)
    flow = Flow(options.output / preset_name(params), _print, options.seed)
    name = changed_name(options.preset or preset_name(params), options.set)
    try:
        if options.count:
            counted = count(params, options.count, named_fields(options.config, options.set))
            print(count_row(name, counted))
            if _has_row(name):
                update_count(DOCS, name, options.count, counted)
            return 0
        device = DEVICES[options.device or PRESET_DEVICES.get(preset_name(params), "85F")]
        if options.fit:
            _note_size(name, device.name, pack(params, device, flow), flow)
            return 0
        result = place_and_route(params, device, flow)
    except TooLargeError as error:
        _note_size(name, error.device, error.used, flow)
        return _report(error)
    except IntloomError as error:
        return _report(error)
    measured = record(result)
    print(row(name, measured))
    print(path_row(name, measured["path"]))
    if _has_row(name):
        update(DOCS, name, result, _content(flow))
    return 0


def _has_row(name: str) -> bool:
    """Whether the manual records this design."""
    return named_changes(name)[0] in PRESETS and (DOCS / PAGE).exists()


if __name__ == "__main__":
    sys.exit(main())
