"""From cells of modules that are mapped one by one to cells of whole designs.

In a component, or a design, that is mapped as a whole, modules share logic, and registers move into multipliers.
"""

from collections import Counter
from collections.abc import Mapping

from intloom.hw.area.model import count_cells

Counts = Mapping[str, float]
Cells = Mapping[str, Counts]
"""Cells of a word, by kind of cell and word."""
OWN_WORDS = {
    "xc7": {
        "array": {"LUT": "product", "FF": "product"},
        "scratchpad": {"LUT": "mux"},
        "epilogue": {"FF": "product"},
        "vector datapath": {"FF": "product"},
        "depthwise": {"LUT": "product", "FF": "product"},
    },
    "ecp5": {
        "array": {"LUT": "add", "FF": "product"},
        "scratchpad": {"LUT": "mux"},
        "epilogue": {"FF": "product"},
        "vector datapath": {"FF": "product"},
    },
}
"""Words of which a component has so many that they are calibrated on it, mapped alone: multiplexers of many banks,
adder trees, and products, whose multipliers contain a number of adders and registers around them."""


def own_cells(cells: Cells, of_kinds: Mapping[str, str], words: Counts, made: Counts) -> dict[str, dict[str, float]]:
    """Cells of a component's words: the word named for a kind becomes what the others leave of the `made` cells."""
    own: dict[str, dict[str, float]] = {}
    for kind, word in of_kinds.items():
        others = {name: number for name, number in cells[kind].items() if name != word}
        own[kind] = {**others, word: round((made[kind] - count_cells(words, others)) / words[word], 4)}
    return own


def scaled_cells(
    cells: Cells, own: Mapping[str, Cells], words: Mapping[str, Counts], made: Counts
) -> dict[str, dict[str, float]]:
    """Cells of words, scaled so that a whole design's `words` by component become the logic and registers `made`."""
    scaled = {kind: dict(of_words) for kind, of_words in cells.items()}
    for kind in scaled.keys() & made.keys() & {"LUT", "FF", "gates"}:
        left, rest = made[kind], Counter[str]()
        for component, counts in words.items():
            if kind in own.get(component, {}):
                left -= count_cells(counts, own[component][kind])
            else:
                rest.update({word: round(number) for word, number in counts.items()})
        scale = left / count_cells(rest, cells[kind])
        scaled[kind] = {word: round(scale * number, 4) for word, number in cells[kind].items()}
    return scaled
