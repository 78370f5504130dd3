"""What becomes of a changed model: refused with one line, or compiled, run and equal to onnxruntime."""

import time
import traceback
from dataclasses import dataclass

import numpy as np
import onnx

import intloom
from intloom.common.errors import IntloomError, MismatchError
from intloom.compiler.reference import open_session
from intloom.flow.checking import reference_model
from intloom.flow.host import as_signed, as_unsigned
from tests.support.parity import run_onnxruntime

LONGEST_SECONDS = 20.0
"""Of processor time, so that other load does not count. A process that waits ends by the timeout of the tests."""


@dataclass(frozen=True)
class Outcome:
    """The class of an outcome, and its text."""

    kind: str
    text: str = ""

    @property
    def fault(self) -> bool:
        """Whether the outcome is none that is allowed."""
        return self.kind not in ("refused", "equal", "no reference")


def outcome(model: onnx.ModelProto, seed: int) -> Outcome:
    """Compile and run a model."""
    started = time.process_time()
    try:
        found = _outcome(model, seed)
    except Exception:  # noqa: BLE001  # any other exception is what the test looks for
        return Outcome("traceback", traceback.format_exc())
    return found if time.process_time() - started < LONGEST_SECONDS else Outcome("hang", f"{found}")


def _outcome(model: onnx.ModelProto, seed: int) -> Outcome:
    data = model.SerializeToString()
    try:
        program = intloom.compile(data, "nano")
    except IntloomError as error:
        return Outcome("refused" if str(error) else "silent error", f"{type(error).__name__}: {error}")
    feeds = feeds_of(program, seed)
    try:
        session = intloom.Session(program, backend="isa")
        made = session.run(None, feeds)
    except IntloomError as error:
        return Outcome("compiles and cannot run", f"{type(error).__name__}: {error}")
    try:
        intloom.Session(program, backend="isa", check=True).run(None, feeds)
    except MismatchError as error:
        return Outcome("mismatch", str(error))
    except IntloomError as error:
        return Outcome("cannot be compared", f"{type(error).__name__}: {error}")
    names = [v.name for v in program.bundle.outputs]
    return _compared(program, model, feeds, dict(zip(names, made, strict=True)))


def feeds_of(program: intloom.Program, seed: int) -> dict[str, np.ndarray]:
    """Random values of the inputs: floats from 0 to 1, or any integers of the type."""
    noise = np.random.default_rng(seed)
    return {
        v.name: noise.random(v.shape, np.float32).astype(v.dtype)
        if v.dtype.kind == "f"
        else noise.integers(0, 255, v.shape).astype(v.dtype)
        for v in program.bundle.inputs
    }


def loads(model: onnx.ModelProto) -> bool:
    """Whether onnxruntime loads the file itself."""
    try:
        open_session(model.SerializeToString(), threads=1)
    except Exception:  # noqa: BLE001  # onnxruntime's exceptions have no documented base class
        return False
    return True


def _compared(program: intloom.Program, model: onnx.ModelProto, feeds: dict, made: dict) -> Outcome:
    """Compare all outputs with onnxruntime on the integer form of the model, without the host parts."""
    folded = program.bundle.need_model("a comparison")
    reference, shifted = reference_model(folded, model)
    if folded.reference is None and loads(model):
        reference = model
    given = {n: as_unsigned(array, n in shifted) for n, array in feeds.items()}
    expected = run_onnxruntime(reference.SerializeToString(), given, list(made))
    for name, array in made.items():
        theirs = as_signed(expected[name], name in shifted)
        if not np.array_equal(array, theirs, equal_nan=array.dtype.kind == "f"):
            gap = np.abs(array.astype(np.float64) - theirs)
            return Outcome("differs without an error", f"{name}: {np.count_nonzero(gap)} of {gap.size}, {gap.max()}")
    return Outcome("equal")
