"""LiteRT as the reference of TFLite files: the default interpreter, whose kernels are XNNPACK's where it has them."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.common.extras import require_extra
from intloom.compiler.refusals import Refusal

Array = NDArray[Any]


@contextmanager
def _discarded_stderr() -> Iterator[None]:
    """Discards what is written to file 2: LiteRT 2.3 names its delegate there, and has no setting against it."""
    sys.stderr.flush()
    try:
        saved = os.dup(2)
    except OSError:
        yield
        return
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def run_litert(model: bytes, feeds: Sequence[Array], *, reference_kernels: bool = False) -> tuple[Array, ...]:
    """Outputs of a flatbuffer for its inputs in order; inputs may have other sizes than the file states.

    `reference_kernels` selects the kernels of TFLite Micro instead of the default ones.

    Raises
    ------
    EnvironmentFault
        The extra `tflite` is not installed.
    UnsupportedError
        LiteRT cannot run the model.
    """
    require_extra("tflite", "ai_edge_litert.interpreter")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType.BUILTIN_REF if reference_kernels else OpResolverType.AUTO
    try:
        with _discarded_stderr():
            interpreter = Interpreter(model_content=model, num_threads=1, experimental_op_resolver_type=kernels)
            details = interpreter.get_input_details()
            for entry, values in zip(details, feeds, strict=True):
                if tuple(entry["shape"]) != values.shape:
                    interpreter.resize_tensor_input(entry["index"], list(values.shape))
            interpreter.allocate_tensors()
            for entry, values in zip(details, feeds, strict=True):
                interpreter.set_tensor(entry["index"], values)
            interpreter.invoke()
            return tuple(np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details())
    except (RuntimeError, ValueError) as error:
        message = f"LiteRT cannot run the model: {' '.join(str(error).split())}"
        raise UnsupportedError(message, Refusal.OPERATOR.number) from None
