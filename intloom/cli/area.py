"""`intloom area`: estimated cells of each component, in a second."""

from dataclasses import dataclass
from typing import Annotated

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import subcommand
from intloom.exploration.device import DEVICES, clock_of, device_of
from intloom.exploration.space import Space, device_space
from intloom.hw.area.components import KINDS
from intloom.hw.area.model import area_of, total
from intloom.hw.spec.params import preset_name

_HELP = """Estimate the cells of each component from measured ones.

Logic is measured with Yosys over a few parameter values (make area-model); other values are interpolated. RAM is blocks
of 16 kbit (ECP5) or 36 kbit (7 series); standard cells are counted in NAND gates, without memories. On the 7 series,
multiplier_bits is 25 and lut_products is 0 unless they are given.

Example: [bold]intloom area --preset base --set rows=8 --device XC7Z020[/bold]
"""
DeviceName = Annotated[
    str,
    typer.Option("--device", metavar="NAME", help=f"{', '.join(DEVICES)}.", autocompletion=lambda: [*DEVICES]),
]


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    device: DeviceName = "LFE5U-85F"
    hardware: HardwareOptions


@subcommand("area", _HELP)
def _run(terminal: Terminal, given: _Options) -> None:
    device, chosen = device_of(given.device), given.hardware.params
    params = device_space(Space(chosen, named=given.hardware.named), device.family).base
    area, clock = area_of(params, device.family), clock_of(params.macs)
    sums = total(area)
    if terminal.as_json:
        terminal.json({
            "device": device.name, "cells": dict(device.cells), "parameters": params.to_dict(), "components": area,
            "total": sums,
            "memory_kib": params.scratch_kib + params.weight_kib, "mhz": clock.mhz, "clock": clock.source,
        })  # fmt: skip
        return
    kinds = KINDS[device.family]
    table = new_table("component", *(f">{kind}" for kind in kinds))
    for component, counts in [*area.items(), ("total", sums), (device.name, device.cells)]:
        if counts:
            table.add_row(component, *(f"{counts[kind]:,.0f}" if kind in counts else "" for kind in kinds))
    terminal.table(table)
    suited = "".join(
        f", {name} = {value}" for name, value in params.to_dict().items() if value != chosen.to_dict()[name]
    )
    terminal.say(
        f"{preset_name(chosen)}{suited}, estimated; {params.scratch_kib + params.weight_kib} KiB of memory; "
        f"{clock.mhz:g} MHz, {clock.source}"
    )
