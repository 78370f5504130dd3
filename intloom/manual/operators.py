"""The page of supported operators, from the registry of lowerings."""

import inspect
from collections import defaultdict

from intloom.compiler.fold.lowering.registry import LOWERINGS, OperatorLowering
from intloom.compiler.fold.patterns.elementwise import ELEMENTWISE
from intloom.compiler.fold.patterns.normalization import NORMALIZATIONS
from intloom.compiler.fold.target import Target
from intloom.compiler.importer.load import NEWEST_OPSET, OLDEST_OPSET
from intloom.compiler.refusals import Refusal

_HEAD = f"""# Supported operators

*`python -m intloom.manual` writes this page from the compiler's tables.*

Supported opsets: {OLDEST_OPSET} to {NEWEST_OPSET}. An operator runs on the accelerator if its inputs and outputs are
quantized to 8 bits per tensor. `intloom inspect --all MODEL.onnx` lists the target of every node of a model, the
reason, and what to change.

## Targets

The target of a node is what runs it.

| target | meaning |
|---|---|
"""
_MEANINGS = {
    "array": "computed by the MAC array",
    "vector": "computed by the vector unit",
    "table": "a table of 256 bytes, usually merged into the layer before",
    "placement": "no instruction: the bytes are used where they are in memory",
    "host": "computed on the host by onnxruntime",
    "unsupported": "neither the accelerator nor onnxruntime can run it",
}
_LOWERED = """
## Operators with a lowering

| operator | supported form |
|---|---|
"""
_ELEMENTWISE = """
## Elementwise operators

A chain of elementwise operators between two quantized tensors is a function of one byte. The compiler evaluates it with
onnxruntime on all 256 inputs and stores the results as one table, which is exact by construction.

- `Add`, `Sub` and `Mul` of two tensors run on the vector unit, proved on all 65,536 pairs of bytes.
- Constants per channel, and `BatchNormalization`, make each channel a function of one byte. If every such function is a
  straight line, a depthwise convolution computes them, proved on all 256 bytes of every channel. Up to four bytes of a
  channel that it misses by 1 are corrected, each by a further convolution and a sum.
- An operand of one pixel is repeated over the size of the other operand.

The operators:

"""
_TRANSFORMERS = """
## GELU and normalization

| operator | target | why |
|---|---|---|
| `Gelu`, `FastGelu`, `QuickGelu`, and GELU as a chain with `Erf` or `Tanh` | `table` | a function of one byte |
| `BatchNormalization` | `array` | part of the Conv before it, or a straight line per channel |
| LayerNorm and RMSNorm over one axis, also as a chain from `ReduceMean` on | `vector` | integers, with `vector_norm` |
| other normalizations, listed below | `host` | no integers define them |

onnxruntime computes a layer normalization in float, also between quantized tensors: it sums values and squares in an
order that depends on the processor, then takes a root and divides. The accelerator has integers of its own, which are
within 1 of the real result ([numerics](numerics.md#layer-normalization)).

The normalizations that run on the host:

"""


def operator_page() -> str:
    """The page's text."""
    targets = "".join(f"| `{v}` | {_MEANINGS[str(v)]} |\n" for v in Target)
    by_rule: dict[OperatorLowering, list[str]] = defaultdict(list)
    for op, rule in LOWERINGS.items():
        by_rule[rule].append(op)
    rows = [(", ".join(f"`{op}`" for op in sorted(ops)), _summary(rule)) for rule, ops in by_rule.items()]
    lowered = "".join(f"| {ops} | {text} |\n" for ops, text in sorted(rows))
    elementwise = ", ".join(f"`{op}`" for op in sorted(ELEMENTWISE))
    normalizations = ", ".join(f"`{op}`" for op in sorted(NORMALIZATIONS))
    return f"{_HEAD}{targets}{_LOWERED}{lowered}{_ELEMENTWISE}{elementwise}.\n{_TRANSFORMERS}{normalizations}.\n"


_REFUSALS = """# Refusals

*`python -m intloom.manual` writes this page from the compiler's table.*

A model is refused (exit code 4), or a node of it runs on the host, for one of these
reasons. `intloom inspect` and error messages print the number of the row, the node, and what to do for that node. Files
that break ONNX's own rules are errors of another kind (exit code 3).

| row | what was found | what to do in general |
|---|---|---|
"""


def _summary(rule: OperatorLowering) -> str:
    text = (inspect.getdoc(rule) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return text.removeprefix("Lower ").rstrip(".")


def refusal_page() -> str:
    """The page of refusals: reasons for which a model, or a part of it, does not run on the accelerator."""
    rows = "".join(f"| {r.number} | {r.found} | {r.remedy} |\n" for r in Refusal)
    return f"{_REFUSALS}{rows}"
