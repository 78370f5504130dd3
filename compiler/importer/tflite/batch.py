"""Files of a fixed batch as files of one image: the program then runs once for each image.

Every operator must treat the images apart, which a table of operators says. What is left as it is, the fold refuses
because of its batch size.
"""

import logging
from copy import copy
from dataclasses import replace

from intloom.compiler.importer.tflite.file import TfliteFile, TfliteOperator

_log = logging.getLogger(__name__)
_IMAGES = frozenset((
    "ABS", "ADD", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE",
    "ELU", "EXP", "FULLY_CONNECTED", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "MAXIMUM", "MAX_POOL_2D",
    "MINIMUM", "MUL", "NEG", "PRELU", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "RESHAPE",
    "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SOFTMAX", "SPACE_TO_DEPTH", "SQRT", "SQUEEZE", "SUB", "TANH",
    "TRANSPOSE_CONV",
))  # fmt: skip
_WEIGHTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Operators with constants that are not broadcast."""
_AXES = {"ARG_MAX": 1, "ARG_MIN": 1, "EXPAND_DIMS": 1, "MEAN": 1, "REDUCE_MAX": 1, "SPLIT": 0, "SPLIT_V": 2}
"""Operators along axes, and the operand that names these."""
_JOINS = frozenset({"CONCATENATION", "PACK"})
_UNCHANGED = {
    "MIRROR_PAD": (1, 2), "PAD": (1, 2), "PADV2": (1, 2), "SLICE": (1, 1), "STRIDED_SLICE": (1, 1), "TRANSPOSE": (1, 1),
}  # fmt: skip
"""An operand of which these many values are 0 where the first axis stays as it is."""
_SIZES = {"RESHAPE": 1, "SLICE": 2, "STRIDED_SLICE": 2, "TRANSPOSE_CONV": 0}
"""The operand with the sizes of the result, or with the end of what is kept."""


def one_image(file: TfliteFile) -> TfliteFile:
    """The file for one image, if all inputs are batches of one size above 1 whose images stay apart; else itself."""
    computed = {*file.inputs, *(i for op in file.operators for i in op.outputs)}
    sizes = {file.tensors[i].shape[0] if len(file.tensors[i].shape) > 1 else 0 for i in computed}
    if len(sizes) > 1 or (batch := sizes.pop()) < 2 or not all(_stays_apart(file, op, batch) for op in file.operators):
        return file
    _log.warning("the batch size becomes 1: the program runs once for each image")
    tensors = [replace(t, shape=(1, *t.shape[1:])) if i in computed else t for i, t in enumerate(file.tensors)]
    operators = []
    for op in file.operators:
        inputs, options, at = list(op.inputs), op.options, _SIZES.get(op.code, len(op.inputs))
        if at < len(inputs):
            stored = file.tensors[inputs[at]]
            assert stored.data is not None
            data = stored.data.copy()
            data[0] = min(1, data[0])
            inputs[at] = len(tensors)
            tensors.append(replace(stored, name=f"{stored.name}/one_image{op.index}", data=data))
        if op.code == "RESHAPE" and options is not None:
            options = copy(options)
            options.newShape = list(file.tensors[op.outputs[0]].shape)
            options.newShape[:1] = [1]
        operators.append(replace(op, inputs=tuple(inputs), options=options))
    return replace(file, tensors=tuple(tensors), operators=tuple(operators))


def _stays_apart(file: TfliteFile, op: TfliteOperator, batch: int) -> bool:
    """Whether each image of the results depends on the same image of the operands only."""
    operands = [file.tensors[i] for i in op.inputs if i >= 0]
    constants = [t for t in operands if t.data is not None]
    ranks = {len(t.shape) for t in operands if t.data is None}
    # Operands of fewer dimensions are broadcast over images.
    if len(ranks) != 1 or not _keeps_all(file, op, batch):
        return False
    (rank,) = ranks
    if op.code in _AXES:
        axes = _integers(file, op, _AXES[op.code])
        return bool(axes) and all(a % (rank + (op.code == "EXPAND_DIMS")) for a in axes)
    if op.code in _JOINS:
        return not constants and op.option("axis", 0) % len(file.tensors[op.outputs[0]].shape) > 0
    if op.code in _UNCHANGED:
        position, count = _UNCHANGED[op.code]
        return _integers(file, op, position)[:count] == [0] * count
    if op.code in _WEIGHTS:
        return len(constants) == len(operands) - 1
    # Constants are the same for every image.
    same = all(len(t.shape) < rank or t.shape[0] == 1 for t in constants)
    return op.code in _IMAGES and same and (op.code != "BATCH_MATMUL" or rank > 2)


def _keeps_all(file: TfliteFile, op: TfliteOperator, batch: int) -> bool:
    """Whether the sizes that an operator reads are those of a result with all images."""
    if op.code == "STRIDED_SLICE":
        whole = _integers(file, op, 2)[:1] == [batch] or op.option("endMask", 0) & 1
        return bool(whole) and _integers(file, op, 3)[:1] == [1] and not op.option("shrinkAxisMask", 0) & 1
    at = _SIZES.get(op.code, len(op.inputs))
    return at >= len(op.inputs) or _integers(file, op, at)[:1] in ([batch], [-1])


def _integers(file: TfliteFile, op: TfliteOperator, position: int) -> list[int]:
    """The values of a constant operand; none of another one."""
    data = file.tensors[op.inputs[position]].data
    return [] if data is None else [int(v) for v in data.ravel()]
