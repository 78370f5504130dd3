"""The page of supported operators, from the registry of lowerings."""

from __future__ import annotations

import inspect
from collections import defaultdict

from intloom.compiler.fold.lowering.registry import OperatorLowering, registered_lowerings
from intloom.compiler.fold.patterns.elementwise import ELEMENTWISE
from intloom.compiler.fold.target import Target
from intloom.compiler.importer.load import NEWEST_OPSET, OLDEST_OPSET

_HEAD = f"""# Supported operators

*This page is written by `python -m intloom.manual` from the compiler's own tables.*

Opsets {OLDEST_OPSET} to {NEWEST_OPSET} are read. An operator runs on the accelerator when its inputs and outputs are
quantized to 8 bits per tensor; `intloom inspect MODEL.onnx` says of every node of a model where it would run, why, and
what to change.

## Targets

A node's target is where it runs.

| target | meaning |
|---|---|
"""
_MEANINGS = {
    "array": "computed by the MAC array",
    "vector": "computed by the vector unit",
    "table": "part of a 256-byte table, mostly merged into the layer before",
    "placement": "no instruction: the bytes are used where they are in memory",
    "host": "runs on the host through onnxruntime",
    "unsupported": "neither the accelerator nor onnxruntime can run it",
}
_LOWERED = """
## Operators with a lowering

| operator | what it is lowered as |
|---|---|
"""
_ELEMENTWISE = """
## Elementwise operators

A chain of these between one quantized tensor and the next is a function of one byte. It is evaluated on all 256 inputs
by onnxruntime when the model is compiled, and becomes one table, exact by construction. `Add`, `Sub` and `Mul` of two
tensors become the vector unit's own sum and product, proved on all 65,536 pairs of bytes. With a constant for each
channel (and in `BatchNormalization`) each channel is a function of one byte; where that is a straight line, a depthwise
convolution gives it, proved on all bytes of every channel. An operand of one pixel is repeated over
the other's size. The operators:

"""


def operator_page() -> str:
    """The page's text."""
    targets = "".join(f"| `{v}` | {_MEANINGS[str(v)]} |\n" for v in Target)
    by_rule: dict[OperatorLowering, list[str]] = defaultdict(list)
    for op, rule in registered_lowerings().items():
        by_rule[rule].append(op)
    rows = [(", ".join(f"`{op}`" for op in sorted(ops)), _summary(rule)) for rule, ops in by_rule.items()]
    lowered = "".join(f"| {ops} | {text} |\n" for ops, text in sorted(rows))
    elementwise = ", ".join(f"`{op}`" for op in sorted(ELEMENTWISE))
    return f"{_HEAD}{targets}{_LOWERED}{lowered}{_ELEMENTWISE}{elementwise}.\n"


def _summary(rule: OperatorLowering) -> str:
    text = (inspect.getdoc(rule) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return text.removeprefix("Lower ").rstrip(".")
