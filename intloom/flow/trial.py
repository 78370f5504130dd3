"""Trial run of a model's host parts when it is compiled: what compiles must also run."""

from collections.abc import Mapping

import numpy as np
import onnx

from intloom.common.errors import ModelError, UsageError
from intloom.compiler.frontend import FoldedModel
from intloom.compiler.importer import Model
from intloom.flow.host import Int8
from intloom.flow.reference import host_of
from intloom.flow.regions import run_regions


def try_host_parts(folded: FoldedModel) -> None:
    """Load the host parts and run them once on zeros.

    ONNX's checker does not find all that onnxruntime refuses, for example a bias of the wrong length. Where a size
    depends on data, zeros may not be valid data, and the parts are only loaded.

    Raises
    ------
    ModelError
        onnxruntime cannot load or run a host part.
    """
    host = host_of(folded)
    if folded.model is None or not _has_fixed_sizes(folded.model):
        return
    feeds = {name: np.zeros(shape, _dtype(folded.model, name)) for name, shape in folded.inputs.items()}

    def zeros(index: int, _values: Mapping[str, Int8]) -> dict[str, Int8]:
        region = folded.regions[index]
        return {name: np.zeros(region.tensors[name].shape, np.int8) for name in region.outputs}

    try:
        _, made = run_regions(folded, host, feeds, zeros)
        host.after(made, feeds)
    except UsageError as error:
        raise ModelError(f"the model is not valid: {error}") from None


def _has_fixed_sizes(model: Model) -> bool:
    made = [v for n in model.nodes for v in n.outputs if v]
    return all(model.dtype(v) and model.shape(v) is not None for v in (*model.inputs, *made))


def _dtype(model: Model, name: str) -> np.dtype[np.generic]:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(model.dtype(name).upper())))
