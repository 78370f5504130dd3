"""Grouped convolutions that a converter wrote as one convolution for each group.

Some exporters split the channels, convolve every part, and concatenate the results. This rewrites such a group of
operators to one CONV_2D, whose groups follow from the channels of its filters.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from intloom.compiler.importer.tflite.file import TfliteFile, TfliteOperator, TfliteTensor


def join_groups(file: TfliteFile) -> TfliteFile:
    """The file with every split convolution as one; new constants follow the tensors of the file."""
    readers = Counter(i for op in file.operators for i in op.inputs) + Counter(file.outputs)
    makers = {i: op for op in file.operators for i in op.outputs}
    tensors, joined, gone = list(file.tensors), dict[int, TfliteOperator](), set[int]()
    for concat in file.operators:
        group = _group(file, concat, makers, readers)
        if group is None:
            continue
        weights = tuple(_stacked(tensors, group, position) for position in (1, 2))
        inputs = (group.x, *weights)
        joined[concat.index] = replace(group.parts[0], index=concat.index, inputs=inputs, outputs=concat.outputs)
        gone |= {group.split.index, *(p.index for p in group.parts)}
    operators = tuple(joined.get(op.index, op) for op in file.operators if op.index not in gone)
    return replace(file, tensors=tuple(tensors), operators=operators)


@dataclass(frozen=True)
class _Group:
    x: int
    split: TfliteOperator
    parts: tuple[TfliteOperator, ...]


def _group(
    file: TfliteFile, concat: TfliteOperator, makers: dict[int, TfliteOperator], readers: Counter[int]
) -> _Group | None:
    """The operators that a concatenation ends, if they are one grouped convolution."""
    if concat.code != "CONCATENATION" or concat.option("axis", 0) not in (3, -1):
        return None
    parts = tuple(p for i in concat.inputs if (p := makers.get(i)) is not None and p.code == "CONV_2D")
    if len(parts) != len(concat.inputs) or len(parts) < 2:
        return None
    split = makers.get(parts[0].inputs[0])
    if split is None or split.code != "SPLIT" or split.outputs != tuple(p.inputs[0] for p in parts):
        return None
    first, result = file.tensors[parts[0].inputs[1]], file.tensors[concat.outputs[0]]
    for part in parts:
        weights, made = file.tensors[part.inputs[1]], file.tensors[part.outputs[0]]
        same = vars(part.options) == vars(parts[0].options) and len(part.inputs) == len(parts[0].inputs)
        scales = (made.scales, made.zero_points) == (result.scales, result.zero_points)
        alone = readers[part.inputs[0]] == readers[part.outputs[0]] == 1
        if not (same and scales and alone) or weights.data is None or weights.shape != first.shape:
            return None
        if len(part.inputs) > 2 and (part.inputs[2] < 0 or file.tensors[part.inputs[2]].data is None):
            return None
    axis = file.tensors[split.inputs[0]].data
    if len(parts[0].inputs) < 3 or axis is None or int(axis.ravel()[0]) not in (3, -1):
        return None
    return _Group(split.inputs[1], split, parts)


def _stacked(tensors: list[TfliteTensor], group: _Group, position: int) -> int:
    """Add the constants of all parts as one tensor with a scale for each filter; returns its index."""
    parts = [tensors[p.inputs[position]] for p in group.parts]
    data = np.concatenate([p.data for p in parts if p.data is not None])
    times = [1 if p.data is None or len(p.scales) > 1 else len(p.data) for p in parts]
    scales = tuple(s for p, n in zip(parts, times, strict=True) for s in p.scales * n)
    zeros = tuple(z for p, n in zip(parts, times, strict=True) for z in p.zero_points * n)
    name = f"{parts[0].name}/grouped{group.split.index}"
    tensors.append(TfliteTensor(name, data.shape, parts[0].dtype, scales, zeros, 0, data))
    return len(tensors) - 1
