"""From a TFLite file to a `Model`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from intloom.common.errors import FileFormatError, UnsupportedError
from intloom.compiler.importer.model import Model
from intloom.compiler.importer.tflite import operators  # noqa: F401  # registers the conversions
from intloom.compiler.importer.tflite.batch import one_image
from intloom.compiler.importer.tflite.converter import CONVERSIONS, Converter
from intloom.compiler.importer.tflite.file import TfliteFile, TfliteOperator, check_integer, read_tflite
from intloom.compiler.importer.tflite.grouped import join_groups
from intloom.compiler.importer.tflite.sizes import fold_sizes
from intloom.compiler.importer.tflite.source import TfliteSource
from intloom.compiler.refusals import Refusal, UnsupportedPattern


def load_tflite(path: Path) -> Model:
    """Read, check and convert a TFLite file.

    Raises
    ------
    FileFormatError
        The file cannot be read or is damaged.
    UnsupportedError
        The file is not int8 throughout, or has an operator that the importer does not know.
    """
    return convert(read_tflite(path))


def convert(file: TfliteFile) -> Model:
    """Convert a file that was read."""
    with _fitting(file, "an operator"):
        check_integer(file)
        file = one_image(fold_sizes(_without_densify(file)))
        joined = join_groups(file)
    converter = Converter(joined)
    for op in joined.operators:
        with _fitting(file, op.label):
            _convert(converter, op)
    model = converter.model()
    return replace(
        model, tflite=TfliteSource(file, {i: v for i, v in converter.views.items() if i < len(file.tensors)})
    )


def _without_densify(file: TfliteFile) -> TfliteFile:
    """The file without DENSIFY: constants are dense already."""
    tensors, kept = list(file.tensors), list[TfliteOperator]()
    for op in file.operators:
        data = tensors[op.inputs[0]].data if op.code == "DENSIFY" else None
        if data is None:
            kept.append(op)
        else:
            result = tensors[op.outputs[0]]
            tensors[op.outputs[0]] = replace(result, data=data.reshape(result.shape))
    return replace(file, tensors=tuple(tensors), operators=tuple(kept))


@contextmanager
def _fitting(file: TfliteFile, name: str) -> Iterator[None]:
    """Convert errors that shapes, options and numbers of operands cause which contradict each other."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise FileFormatError(
            f"{file.name}: {name} does not fit its operands ({error}): export the model again"
        ) from None


def _convert(converter: Converter, op: TfliteOperator) -> None:
    conversion, floats = CONVERSIONS.get(op.code), converter.floats(op.inputs)
    try:
        if conversion is None:
            raise Refusal.OPERATOR("it has no integer form here", "use operators that docs/tflite.md lists")
        if not floats <= converter.outside and not conversion.floats:
            raise Refusal.TYPE("it computes with floats that the file does not quantize", "quantize before it")
        for tensor in map(converter.tensor, (*(op.inputs[i] for i in conversion.stored), *op.outputs)):
            if conversion.stored and not tensor.quantized:
                raise Refusal.TYPE(f"{tensor.name!r} is not quantized with one scale", "convert to full int8")
        conversion.rule(converter, op)
        if floats and floats <= converter.outside:
            converter.outside |= converter.floats(op.outputs)
    except UnsupportedError as error:
        reason = error if isinstance(error, UnsupportedPattern) else Refusal.TYPE(str(error), "convert to full int8")
        converter.keep(op, reason)
