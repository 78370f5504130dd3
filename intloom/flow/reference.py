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

    name: str

    def tensors(self, feeds: Mapping[str, Array], tensors: Mapping[str, Int8]) -> Mapping[str, Int8]:
        """Those of `tensors`, the golden model's, that the runtime computes too, in the accelerator's form."""

    def check_outputs(
        self, feeds: Mapping[str, Array], outputs: Mapping[str, Array], tensors: Mapping[str, Int8]
    ) -> list[Check]:
        """Compare the model's outputs that the host computes."""

    def compare_original(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> OriginalComparison:
        """The distance of a run from the unchanged file in the runtime with its defaults."""


class OnnxruntimeReference:
    """onnxruntime, for ONNX files."""

    name = ONNXRUNTIME

    def __init__(self, folded: FoldedModel, source: ModelSource) -> None:
        self._folded, self._source = folded, source

    def tensors(self, feeds: Mapping[str, Array], tensors: Mapping[str, Int8]) -> Mapping[str, Int8]:
        """Values of the integer form of the model."""
        return reference_tensors(self._folded, model_proto(self._source), feeds, tensors)

    def check_outputs(
        self, feeds: Mapping[str, Array], outputs: Mapping[str, Array], tensors: Mapping[str, Int8]
    ) -> list[Check]:
        """Outputs of the integer form of the model."""
        return check_outputs(self._folded, model_proto(self._source), feeds, outputs)

    def compare_original(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> OriginalComparison:
        """The file in onnxruntime."""
        return compare_original(self._folded, model_proto(self._source), feeds, outputs)


class LitertReference:
    """LiteRT, for TFLite files."""

    name = LITERT

    def __init__(self, folded: FoldedModel, micro: bool) -> None:
        self._folded, self._micro = folded, micro

    def tensors(self, feeds: Mapping[str, Array], tensors: Mapping[str, Int8]) -> Mapping[str, Int8]:
        """Values of the file, with the accelerator's results of the operators that it defines."""
        return litert.litert_tensors(self._folded, feeds, tensors)

    def check_outputs(
        self, feeds: Mapping[str, Array], outputs: Mapping[str, Array], tensors: Mapping[str, Int8]
    ) -> list[Check]:
        """Outputs of the file, with the accelerator's results of the operators that it defines."""
        known = {q.source for q in self._folded.output_quant.values()}
        values = litert.litert_outputs(self._folded, feeds, tensors)
        return compare_outputs({n: a for n, a in outputs.items() if n not in known}, values, LITERT)

    def compare_original(self, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> OriginalComparison:
        """The file in LiteRT, or with the kernels of TFLite Micro."""
        theirs = litert.litert_outputs(self._folded, feeds, {}, micro=self._micro)
        return OriginalComparison(
            outputs=distances(self._folded, outputs, theirs),
            runtime=TFLITE_MICRO if self._micro else LITERT,
            defined_layers=litert.defined_operators(self._folded),
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
