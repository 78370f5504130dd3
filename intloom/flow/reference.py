"""The runtime that a model's own file belongs to: what a run is compared with, and what computes the host parts.

A further runtime is one class more here.
"""

from collections.abc import Mapping
from typing import Protocol

from intloom.arrays import Array
from intloom.common.errors import UsageError
from intloom.compiler.frontend import FoldedModel
from intloom.flow import litert
from intloom.flow.checking import check_outputs, compare_outputs, reference_tensors
from intloom.flow.host import HostParts, HostSide, Int8
from intloom.flow.original import compare_original, distances
from intloom.models import ModelSource, model_proto
from intloom.sim.checks import LITERT, ONNXRUNTIME, TFLITE_MICRO, Check, OriginalComparison


class Reference(Protocol):
    """A runtime beside the golden model."""

    def tensors(self, feeds: Mapping[str, Array], tensors: Mapping[str, Int8]) -> Mapping[str, Mapping[str, Int8]]:
        """Those of `tensors`, the golden model's, that are computed again, in the accelerator's form: by runtime."""

    def check_outputs(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> list[Check]:
        """Compare the model's outputs that the host computes."""

    def compare_original(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> OriginalComparison:
        """The distance of a run from the unchanged file in the runtime with its defaults."""


class OnnxruntimeReference:
    """onnxruntime, for ONNX files."""

    def __init__(self, folded: FoldedModel, source: ModelSource) -> None:
        self._folded, self._source = folded, source

    def tensors(self, feeds: Mapping[str, Array], tensors: Mapping[str, Int8]) -> Mapping[str, Mapping[str, Int8]]:
        """Values of the integer form of the model."""
        return {ONNXRUNTIME: reference_tensors(self._folded, model_proto(self._source), feeds, tensors)}

    def check_outputs(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> list[Check]:
        """Outputs of the integer form of the model."""
        return check_outputs(self._folded, model_proto(self._source), feeds, outputs)

    def compare_original(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> OriginalComparison:
        """The file in onnxruntime."""
        return compare_original(self._folded, model_proto(self._source), feeds, outputs)


class LitertReference:
    """LiteRT, for TFLite files; it runs the file once, and once more where the accelerator defines operators."""

    def __init__(self, folded: FoldedModel, micro: bool) -> None:
        self._folded, self._micro = folded, micro
        self._defined = litert.defined_operators(folded)
        self._outputs: Mapping[str, Array] = {}
        """The file's outputs, with the accelerator's results of the operators that it defines."""

    def tensors(self, feeds: Mapping[str, Array], tensors: Mapping[str, Int8]) -> Mapping[str, Mapping[str, Int8]]:
        """Values of the file, with the accelerator's results of the operators that it defines, and these results."""
        values, self._outputs = litert.litert_values(self._folded, feeds, tensors)
        return values

    def check_outputs(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> list[Check]:
        """Outputs of the file that the host computes, or whose order it restores."""
        known = {q.source for q in self._folded.output_quant.values() if q.positions is None}
        return compare_outputs({n: a for n, a in outputs.items() if n not in known}, self._outputs, LITERT)

    def compare_original(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> OriginalComparison:
        """The file in LiteRT, or with the kernels of TFLite Micro."""
        again = self._micro or self._defined
        theirs = litert.litert_outputs(self._folded, feeds, micro=self._micro) if again else self._outputs
        return OriginalComparison(
            outputs=distances(self._folded, outputs, theirs),
            runtime=TFLITE_MICRO if self._micro else LITERT,
            defined_layers=self._defined,
        )


def reference_of(folded: FoldedModel, source: ModelSource, *, micro: bool = False) -> Reference:
    """The runtime of a model's file; `micro` compares a TFLite file itself with the kernels of TFLite Micro.

    Raises
    ------
    UsageError
        `micro` is set for another file.
    """
    if folded.model is not None and folded.model.tflite is not None:
        return LitertReference(folded, micro)
    if micro:
        raise UsageError("--reference tflite-micro needs a program from a TFLite file; leave it out")
    return OnnxruntimeReference(folded, source)


def host_of(folded: FoldedModel) -> HostParts:
    """The host parts of a model, run by the runtime of its file."""
    if folded.model is not None and folded.model.tflite is not None:
        return litert.LitertHost(folded)
    return HostSide(folded)
