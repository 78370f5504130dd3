"""LiteRT beside a program from a TFLite file: host parts, the exact comparison, and the file as LiteRT runs it.

Every operator must equal LiteRT's on equal inputs, except averages, Softmax and products of two tensors, whose results
the accelerator defines by integers: those of a product are rounded as a convolution's, where LiteRT rounds twice.
The exact comparison computes these integers in onnxruntime from the golden model's operands; LiteRT goes on from them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.arrays import Array
from intloom.common.errors import ModelError
from intloom.compiler.fold.arithmetic.runtime_evaluation import to_stored
from intloom.compiler.fold.patterns.quantization_unit import find_quantization_units
from intloom.compiler.frontend import FoldedModel
from intloom.compiler.importer import Model, OnnxNode, cut
from intloom.compiler.importer.tflite.file import TfliteFile, TfliteOperator
from intloom.compiler.importer.tflite.source import TfliteSource
from intloom.compiler.importer.tflite.view import Order, inverse
from intloom.flow.checking import reference_model, tensor_values
from intloom.flow.host import (
    Int8,
    Int8s,
    as_internal,
    as_signed,
    as_unsigned,
    dequantize_array,
    run_with_outputs,
    stored_array,
)
from intloom.sim.checks import LITERT, ONNXRUNTIME

_DEFINED = frozenset({"AVERAGE_POOL_2D", "BATCH_MATMUL", "MEAN", "SOFTMAX"})


class LitertHost:
    """The host parts of a model from a TFLite file, which LiteRT runs."""

    def __init__(self, folded: FoldedModel) -> None:
        assert folded.model is not None
        self._folded, self._model, self._source = folded, folded.model, _source(folded)

    def before(self, feeds: Mapping[str, Array], region: int = 0, made: Mapping[str, Int8] | None = None) -> Int8s:
        """Inputs of a region, computed from the model's inputs and from the outputs `made` by earlier regions."""
        folded, known = self._folded, {**feeds, **self.stored(made or {})}
        names = [n for n in folded.regions[region].inputs if n in folded.input_quant and n not in (made or {})]
        values = _Computed(self._model, self._source, known)
        stored = {n: values.get(folded.input_quant[n].stored) for n in names}
        return {n: as_internal(array, folded.graph.tensors[n].shape) for n, array in stored.items()}

    def after(self, outputs: Mapping[str, Int8], feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs and all outputs of the accelerator; `feeds` are the model's inputs."""
        known = self.stored(outputs)
        values = _Computed(self._model, self._source, {**feeds, **known})
        floats = {
            q.source: dequantize_array(outputs[name], q)
            for name, q in self._folded.output_quant.items()
            if q.source != q.stored and name in outputs
        }
        return {**known, **floats, **{name: values.get(name) for name in self._model.outputs}}

    def stored(self, made: Mapping[str, Int8]) -> dict[str, Array]:
        """Results of the accelerator by the names of the model's stored values."""
        return {q.stored: stored_array(made[n], q) for n, q in self._folded.output_quant.items() if n in made}


class _Computed:
    """Values of the model, computed on demand by LiteRT; known ones are known in every order that movements make."""

    def __init__(self, model: Model, source: TfliteSource, known: Mapping[str, Array]) -> None:
        self._model, self._source, self.known = model, source, dict[str, Array]()
        self._moves: dict[str, list[tuple[str, Order]]] = {}
        """For a value, those with the same bytes, and the order of its dimensions in them; empty for a Reshape."""
        for node in model.nodes:
            if node.op in ("Transpose", "Reshape"):
                order = tuple(node.integers("perm", ()))
                for before, after in self._ends(node):
                    self._moves.setdefault(before, []).append((after, order))
                    self._moves.setdefault(after, []).append((before, inverse(order)))
        for name, value in known.items():
            self.add(name, value)

    def get(self, name: str) -> Array:
        """A stored value, or a float output."""
        if name not in self.known:
            held = self._held(name)
            self.add(held, self._source.compute(held, self.known))
        return self.known[name]

    def add(self, name: str, value: Array) -> None:
        """Add a value, and with it those that hold the same bytes."""
        self.known[name], pending = value, [name]
        while pending:
            have = pending.pop()
            for other, order in self._moves.get(have, ()):
                shape = self._model.shape(other)
                if other not in self.known and shape is not None:
                    moved = self.known[have].transpose(order) if order else self.known[have]
                    self.known[other] = np.ascontiguousarray(moved).reshape(shape)
                    pending.append(other)

    def _ends(self, node: OnnxNode) -> Iterator[tuple[str, str]]:
        """The values before and after a movement, and the stored ones around it if it keeps their scale."""
        before, after = node.inputs[0], node.outputs[0]
        yield before, after
        maker, reader = self._model.producers.get(before), next(iter(self._model.users(after)), None)
        if maker is None or reader is None or (maker.op, reader.op) != ("DequantizeLinear", "QuantizeLinear"):
            return
        arrays = [[self._model.constants[v].array for v in n.inputs[1:]] for n in (maker, reader)]
        if all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True)):
            yield maker.inputs[0], reader.outputs[0]

    def _held(self, name: str) -> str:
        """The value itself, or one with the same bytes, that holds a tensor of the file."""
        names = [name]
        for value in names:
            if value in self._source.holders:
                return value
            names += [other for other, _ in self._moves.get(value, ()) if other not in names]
        raise ModelError(f"value {name!r} must hold a tensor of the file")


def litert_values(
    folded: FoldedModel, feeds: Mapping[str, Array], tensors: Mapping[str, Int8]
) -> tuple[dict[str, dict[str, Int8]], dict[str, Array]]:
    """Those of `tensors` that runtimes compute too, by runtime, and the file's outputs, from one run of LiteRT.

    LiteRT continues from the integer forms of the operators that the accelerator defines.
    """
    source, names, forms = _source(folded), stored_names(folded, tensors), integer_forms(folded, feeds, tensors)
    assert folded.model is not None
    for before, after in _reshapes(folded.model):
        if before in forms:
            forms.setdefault(after, forms[before])
    given = _inputs(source, feeds)
    for op in source.file.operators:
        for index in op.outputs if defines(source.file, op) else ():
            if source.views[index].value in forms:
                given[index] = source.as_tensor(index, forms[source.views[index].value])
    wanted = {i for i, v in source.views.items() if v.value in names and i in source.makers and i not in given}
    computed = source.run(wanted | set(source.file.outputs), given)
    theirs = {names[source.views[i].value]: source.as_value(i, computed[i]) for i in wanted}
    shapes = {name: t.shape for name, t in folded.graph.tensors.items()}
    values = {LITERT: {n: as_internal(v, shapes[n]) for n, v in theirs.items()}}
    values[ONNXRUNTIME] = {n: as_internal(forms[v], shapes[n]) for v, n in names.items() if v in forms}
    for name, (stored, _) in folded.orders.items():
        if stored in forms and name in tensors:
            values[ONNXRUNTIME][name] = tensor_values(folded, name, forms[stored])
    return values, {source.file.tensors[i].name: computed[i] for i in source.file.outputs}


def integer_forms(folded: FoldedModel, feeds: Mapping[str, Array], tensors: Mapping[str, Int8]) -> dict[str, Array]:
    """Results of the operators that the accelerator defines, computed by onnxruntime in integers from `tensors`.

    The accelerator may store no result of one, for example where a table follows.
    """
    model, defined = folded.model, set(defined_operators(folded))
    assert model is not None
    values = _Computed(model, _source(folded), {**feeds, **_stored(folded, tensors)})
    forms: dict[str, Array] = {}
    for unit in find_quantization_units(model):
        if defined.isdisjoint(unit.origins):
            continue
        sources, result = [model.producers[v] for v in unit.leaves], unit.output
        kept = {n.name for n in (*sources, *unit.nodes)}
        operands = dict.fromkeys(n.inputs[0] for n in sources if n.inputs[0] not in model.constants)
        part = cut(model, (n for n in model.nodes if n.name in kept), [*operands], [result])
        proto, shifted = reference_model(replace(folded, model=part), onnx.ModelProto())
        made = run_with_outputs(proto, [result], {v: as_unsigned(values.get(v), v in shifted) for v in operands})
        forms[result] = as_signed(made[result], result in shifted)
        if result not in values.known:
            values.add(result, forms[result])
    return forms


def _stored(folded: FoldedModel, tensors: Mapping[str, Int8]) -> dict[str, Array]:
    """Tensors of the graph as the stored values of the model that they hold."""
    model, values = folded.model, dict[str, Array]()
    assert model is not None
    ordered = {stored: name for name, (stored, _) in folded.orders.items() if name in tensors}
    for stored, name in (stored_names(folded, tensors) | ordered).items():
        shape = model.shape(stored)
        if shape is None:
            continue  # a tensor between operators that the model does not have
        array = to_stored(tensors[name], model.dtype(stored) == "uint8")
        if name in folded.orders and folded.orders[name][0] == stored:
            array = array.ravel()[folded.orders[name][1]]
        values[stored] = array.reshape(shape)
    return values


def stored_names(folded: FoldedModel, tensors: Mapping[str, Int8]) -> dict[str, str]:
    """For stored values of the model, the tensor of the graph that holds them in their order."""
    quants = (*folded.input_quant.items(), *folded.output_quant.items())
    border = {q.stored: n for n, q in quants if q.positions is None}
    names = {n: n for n in tensors} | {stored: n for stored, n in border.items() if n in tensors}
    model = folded.model
    assert model is not None
    for before, after in _reshapes(model):
        if before in names:
            names.setdefault(after, names[before])
    return names


def _reshapes(model: Model) -> Iterator[tuple[str, str]]:
    """Stored values before and after each Reshape, which keeps bytes in their order."""
    for node in model.nodes:
        after = model.users(node.outputs[0])
        if node.op == "Reshape" and node.inputs[0] in model.producers and len(after) == 1:
            yield model.producers[node.inputs[0]].inputs[0], after[0].outputs[0]


def _inputs(source: TfliteSource, feeds: Mapping[str, Array]) -> dict[int, NDArray[Any]]:
    return {i: feeds[source.file.tensors[i].name] for i in source.file.inputs}


def litert_outputs(folded: FoldedModel, feeds: Mapping[str, Array], *, micro: bool) -> dict[str, Array]:
    """The outputs of the unchanged file in LiteRT; `micro` selects the kernels of TFLite Micro."""
    source = _source(folded)
    outputs = source.run(set(source.file.outputs), _inputs(source, feeds), reference_kernels=micro)
    return {source.file.tensors[i].name: array for i, array in outputs.items()}


def defines(file: TfliteFile, op: TfliteOperator) -> bool:
    """Whether the accelerator defines an operator's results by integers of its own."""
    computed_weights = op.code == "FULLY_CONNECTED" and file.tensors[op.inputs[1]].data is None
    return op.code in _DEFINED or computed_weights


def defined_operators(folded: FoldedModel) -> tuple[str, ...]:
    """Names of the operators on the accelerator whose results it defines."""
    file = _source(folded).file
    return tuple(sorted({file.label(op) for op in file.operators if defines(file, op)} & folded.accelerated))


def _source(folded: FoldedModel) -> TfliteSource:
    assert folded.model is not None and folded.model.tflite is not None
    return folded.model.tflite
