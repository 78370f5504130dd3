"""The assignment of all nodes of a model in one line."""

from collections import Counter

from intloom.compiler.frontend import FoldedModel

_BORDERS = frozenset({"QuantizeLinear", "DequantizeLinear", "Constant"})


def summary(folded: FoldedModel) -> str:
    """Operators with their targets, in file order, and the number of regions."""
    found = Counter(f"{a.op} {a.target}" for a in folded.assignments if a.op not in _BORDERS)
    nodes = ", ".join(name if count == 1 else f"{count} {name}" for name, count in found.items())
    return f"{nodes}; {len(folded.regions)} region{'s' * (len(folded.regions) > 1)}"
