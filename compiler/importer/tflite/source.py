"""What a model keeps of the TFLite file that it was converted from: its values, computed by LiteRT from known ones."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import FileFormatError, UsageError
from intloom.compiler.importer.tflite.file import TfliteFile, TfliteOperator
from intloom.compiler.importer.tflite.view import View, inverse
from intloom.compiler.importer.tflite.writer import write_tflite
from intloom.compiler.litert import run_litert

Values = Mapping[str, NDArray[Any]]
"""Stored values of the model, by name."""


@dataclass(frozen=True, eq=False)
class TfliteSource:
    """The file, and for its tensors the stored values of the model that hold them."""

    file: TfliteFile
    views: Mapping[int, View]

    @cached_property
    def makers(self) -> Mapping[int, TfliteOperator]:
        """The operator that computes each tensor."""
        return {i: op for op in self.file.operators for i in op.outputs}

    @cached_property
    def holders(self) -> Mapping[str, int]:
        """The tensor that each value of the model holds; of several in other shapes, the first."""
        holders: dict[str, int] = {}
        for index, view in self.views.items():
            holders.setdefault(view.value, index)
        return holders

    def as_tensor(self, index: int, value: NDArray[Any]) -> NDArray[Any]:
        """A value of the model as the file has it."""
        tensor, order = self.file.tensors[index], self.views[index].order
        shape = tuple(tensor.shape[i] for i in inverse(order))
        return np.ascontiguousarray(value.reshape(shape).transpose(order))

    def as_value(self, index: int, tensor: NDArray[Any]) -> NDArray[Any]:
        """A tensor of the file as the model has it."""
        return np.ascontiguousarray(tensor.transpose(inverse(self.views[index].order)))

    def compute(self, name: str, known: Values) -> NDArray[Any]:
        """A value of the model that LiteRT computes from known ones."""
        given = {
            i: self.as_tensor(i, known[v.value])
            for i, v in self.views.items()
            if v.value in known and self.file.tensors[i].data is None
        }
        index = self.holders[name]
        return self.as_value(index, self.run({index}, given)[index])

    def run(
        self, wanted: Collection[int], given: Mapping[int, NDArray[Any]], *, reference_kernels: bool = False
    ) -> dict[int, NDArray[Any]]:
        """Tensors that LiteRT computes from given ones.

        Raises
        ------
        UsageError
            A wanted tensor depends on an input that is not given.
        """
        stored = {i: values for i in wanted if (values := self.file.tensors[i].data) is not None}
        given = {**stored, **given}
        operators = self._between(wanted, given)
        made = {i for op in operators for i in op.outputs}
        inputs = tuple(dict.fromkeys(i for op in operators for i in op.inputs if i in given and i not in made))
        outputs = tuple(i for i in wanted if i in made)
        tensors = {i: given[i] for i in wanted if i in given and i not in made}
        if outputs:
            data = write_tflite(self.file.tensors, operators, inputs, outputs)
            feeds = [given[i] for i in inputs]
            results = run_litert(data, feeds, reference_kernels=reference_kernels)
            tensors |= {i: self._as_stated(i, values) for i, values in zip(outputs, results, strict=True)}
        return tensors

    def _as_stated(self, index: int, values: NDArray[Any]) -> NDArray[Any]:
        """A result in the shape that the file states, which may leave out dimensions of size 1."""
        tensor = self.file.tensors[index]
        if values.size != prod(tensor.shape):
            raise FileFormatError(
                f"{self.file.name}: tensor {tensor.name!r} must have the shape {values.shape} that LiteRT computes, "
                f"not {tensor.shape}: export the model again"
            )
        return values.reshape(tensor.shape)

    def _between(self, wanted: Collection[int], given: Collection[int]) -> list[TfliteOperator]:
        """The operators on the way from given tensors to wanted ones, in the order of the file."""
        chosen: set[int] = set()
        pending = [i for i in wanted if i not in given]
        while pending:
            index = pending.pop()
            op = self.makers.get(index)
            if op is None:
                raise UsageError(f"input {self.file.tensors[index].name!r} is missing; add it to the feeds")
            if op.index not in chosen:
                chosen.add(op.index)
                pending += [i for i in op.inputs if i >= 0 and i not in given and self.file.tensors[i].data is None]
        return [op for op in self.file.operators if op.index in chosen]
