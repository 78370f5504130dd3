"""Area of an accelerator: a linear model of what Yosys counts, in two steps, and the exact number of RAM blocks.

`measured.json` has, for a few designs, the words of each component: bits of adders, multiplexers, registers, and more,
before mapping. They are fitted to structural counts of the parameters. For each family it has the cells that a bit of
each kind becomes (`calibration`), or the fit to the areas of docs/asic.md. The fit of words takes milliseconds, so only
what was measured is kept.
"""

import itertools
from collections.abc import Mapping
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from intloom.common import evidence
from intloom.hw.area.components import WORDS
from intloom.hw.area.memories import COUNTER_MEMORY_BITS, blocks_of, luts_of, memories
from intloom.hw.spec.params import HardwareParams, from_dict

MEASURED = Path(__file__).with_name("measured.json")


def features(p: HardwareParams) -> dict[str, list[float]]:
    """Structural counts to which the words of each component are proportional."""
    wide = p.wide_multipliers
    plain, luts = p.macs - p.array_lut_products, p.array_lut_products
    slow = not p.wide_multipliers
    deep, softmax, depthwise = p.strip >= 32, p.vector_softmax, p.vector_depthwise
    lut_depthwise = p.depthwise_lut_products
    # FIFOs of words of 4 bytes are too small for macros; one lane needs no second table.
    narrow, several = p.rows * (p.rows <= 4), p.vector_lanes * (p.vector_lanes > 1)
    plain_depthwise = p.depthwise_products - lut_depthwise
    return {
        "array": [plain * (not wide), plain * wide, luts, p.cols, _tree_bits(p)],
        "accumulators": [p.cols, p.cols * deep, p.cols * (not deep), p.cols * p.strip],
        "epilogue": [1, p.lanes, p.lanes * slow, p.cols, p.rows],
        "MAC control": [
            1,
            p.cols,
            p.rows,
            p.rows * p.weight_sums,
            p.cols * p.weight_sums,
            wide * p.weight_sums,
            narrow,
        ],
        "softmax": [softmax, softmax * p.softmax_lanes],
        "normalization": [p.vector_norm, p.vector_norm * p.softmax_lanes],
        "depthwise": [
            1,
            depthwise,
            depthwise * p.rows,
            depthwise * narrow,
            plain_depthwise * slow,
            plain_depthwise * (not slow),
            lut_depthwise,
        ],
        "vector datapath": [1, p.vector_lanes, p.vector_lanes * slow, p.vector_lanes * p.rows, several],
        "vector control": [
            1,
            p.rows,
            p.vector_lanes,
            p.vector_lanes * (p.vector_slices == 2),
            p.vector_lanes * (p.vector_slices > 2),
            p.rows * depthwise,
            narrow,
        ],
        "scratchpad": [
            1,
            p.rows * p.scratch_banks,
            p.rows * (p.vector_slices < 4),
            p.rows * p.scratch_banks * (p.vector_slices < 4),
            p.scratch_banks * log2(p.scratch_banks),
            p.memory_parity * p.scratch_banks * p.rows,
            p.memory_parity * p.scratch_banks * (p.rows + 27),
        ],
        "weight memory": [1, p.rows, p.memory_parity, p.memory_parity * p.rows],
        "load and store": [1, p.rows, narrow, p.constant_check * p.rows],
        "control": [1, p.rows, p.queue_depth * p.rows, p.queue_depth],
    }


def _tree_bits(p: HardwareParams) -> int:
    """Bits of the array's adders after its multipliers, of which wide ones add the products of two rows."""
    lut_columns = p.array_lut_products // p.rows
    terms, bits, columns = (p.rows // 2, 17, p.cols - lut_columns) if p.wide_multipliers else (p.rows, 16, p.cols)
    levels = range(1, terms.bit_length())
    return columns * sum((terms >> level) * (bits + level) for level in levels)


def counted(values: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The words of each component of a measured design."""
    p, words = from_dict(values["parameters"]), {name: dict(counts) for name, counts in values["words"].items()}
    # See `memories`; a read port of 32 words counts twice.
    words["accumulators"].pop("lut memory", None)
    words["control"]["lut memory"] -= 2 * COUNTER_MEMORY_BITS
    words["scratchpad"]["mux"] -= p.scratch_banks * bank_wires(p)
    return words


def bank_wires(p: HardwareParams) -> int:
    """Multiplexers of a bank that are wires: each write enable has one for the whole word, which changes a byte."""
    return p.rows * p.rows * (8 + p.memory_parity)


def words_of(params: HardwareParams) -> dict[str, dict[str, float]]:
    """Estimated words of each component."""
    counted, fitted = features(params), _fitted()
    return {
        component: {word: float(np.dot(fit, counted[component])) for word, fit in fits.items()}
        for component, fits in fitted.items()
    }


def port_words(p: HardwareParams) -> Mapping[str, float]:
    """Words of the width converter, which no measured design has: registers, and multiplexers of data and strobes."""
    word, port = p.word_bits, p.axi_data_bits
    steps = abs(int(log2(port / word)))
    if port < word:
        selected = (word - port) * 9 // 8
        return {"register": word - port + 2 + 2 * steps, "mux": selected, "add": 2 * steps, "logic": 9}
    if port == word:
        return {}
    lanes = {"mux": port - word + 20, "shift": steps * p.port_bytes, "lut memory": 2 * steps}
    return lanes | {"register": 40 + 2 * steps, "add": 36 + 4 * steps, "equal": 20, "logic": 26}


def _converter(params: HardwareParams, family: str) -> Mapping[str, float]:
    """Cells of the width converter: no logic around takes its multiplexers up, so each of their bits is a LUT."""
    words = port_words(params)
    if family == "asic":
        return cells_of(words, family, "control")
    cells = cells_of({**words, "mux": 0}, family, "control")
    return {**cells, "LUT": cells["LUT"] + words.get("mux", 0)}


def count_cells(words: Mapping[str, float], cells: Mapping[str, float]) -> float:
    """The cells of a kind that words become."""
    return sum(number * words.get(word, 0) for word, number in cells.items())


def cells_of(words: Mapping[str, float], family: str, component: str) -> dict[str, float]:
    """Cells by kind that the words of a component become when they are mapped as a part of a whole design."""
    row = _measured()[f"mapping {family}"]
    cells = row["cells"] | row.get("own", {}).get(component, {})
    return {kind: max(0.0, count_cells(words, of_words)) for kind, of_words in cells.items()}


def area_of(params: HardwareParams, family: str) -> dict[str, dict[str, float]]:
    """Estimated cells of each component by kind."""
    area = {name: cells_of(words, family, name) for name, words in words_of(params).items()}
    area["control"] = total({"control": area["control"], "converter": _converter(params, family)})
    if family != "asic":
        for component, its in memories(params).items():
            area[component]["RAM"] = blocks_of(its, family)
            area[component]["LUT"] += luts_of(its, family)
    if family == "ecp5" and params.vector_norm:
        # Each lane has a product of 9 x 25 bits, which is more than a multiplier of 18 x 18.
        area["normalization"]["DSP"] += params.softmax_lanes
    return {component: {k: n for k, n in cells.items() if n} for component, cells in area.items()}


def total(area: Mapping[Any, Mapping[str, float]]) -> dict[str, float]:
    """The sum over components by kind."""
    kinds: dict[str, float] = {}
    for counts in area.values():
        for kind, number in counts.items():
            kinds[kind] = kinds.get(kind, 0.0) + number
    return kinds


@cache
def _measured() -> dict[str, Any]:
    return {name: row.values for name, row in evidence.read(MEASURED).items()}


@cache
def _fitted() -> dict[str, dict[str, Any]]:
    """Coefficients of each component's words."""
    samples = [values for name, values in _measured().items() if name.startswith("design ")]
    designs = [features(from_dict(sample["parameters"])) for sample in samples]
    counts = [counted(sample) for sample in samples]

    def fit(component: str, word: str) -> Any:
        matrix = np.array([design[component] for design in designs], float)
        return fit_counts(matrix, np.array([words.get(component, {}).get(word, 0) for words in counts], float))

    return {component: {word: fit(component, word) for word in WORDS} for component in designs[0]}


def fit_counts(matrix: Any, counts: Any, floor: float = 0.02) -> Any:
    """Coefficients of at least 0 with the smallest weighted error, with the fewest features where errors are equal."""
    result = np.zeros(matrix.shape[1])
    if not counts.any():
        return result
    weights = 1 / np.sqrt(np.maximum(counts, floor * counts.max()))
    scaled, wanted = matrix * weights[:, None], counts * weights
    useful = [k for k in range(matrix.shape[1]) if matrix[:, k].any()]
    least = np.inf
    # Of at most eight features every choice is tried: exact, and without a solver.
    for size in range(1, len(useful) + 1):
        for chosen in map(list, itertools.combinations(useful, size)):
            fit = np.linalg.lstsq(scaled[:, chosen], wanted, rcond=None)[0]
            error = float(np.sum((scaled[:, chosen] @ fit - wanted) ** 2))
            if fit.min() >= 0 and error < 0.999 * least - 1e-9:
                least = error
                result = np.zeros(matrix.shape[1])
                result[chosen] = fit
    return result
