"""All node tests of ONNX through the backend; run by `make evidence`."""

import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import Runner

from intloom import backend
from intloom.common.errors import IntloomError
from intloom.compiler.reference import open_session
from tests.support.onnx_nodes import data_sets


@dataclass(frozen=True)
class Result:
    """What became of a case: its class, and the reason."""

    kind: str
    reason: str = ""


def compare(case: TestCase, outputs: list[np.ndarray], expected: list[np.ndarray]) -> str:
    """The first difference by ONNX's rules and tolerances."""
    wanted = [onnx.numpy_helper.to_array(w) if isinstance(w, onnx.TensorProto) else w for w in expected]
    try:
        Runner.assert_similar_outputs(wanted, outputs, case.rtol, case.atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return ""


def by_onnxruntime(model: onnx.ModelProto, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Outputs of plain onnxruntime without optimization."""
    session = open_session(model.SerializeToString(), optimized=False)
    names = [i.name for i in session.get_inputs()]
    arrays = [v if isinstance(v, list) else np.asarray(v) for v in inputs]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def result_of(case: TestCase) -> Result:
    for model, inputs, expected in data_sets(case):
        try:
            made = list(backend.prepare(model).run(inputs))
        except IntloomError as error:
            return Result("skipped" if str(error) else "silent error", str(error))
        except Exception as error:  # noqa: BLE001  # what the test looks for
            return Result("exception", f"{type(error).__name__}: {error}")
        difference = compare(case, made, expected)
        if not difference:
            continue
        theirs = by_onnxruntime(model, inputs)
        if compare(case, theirs, expected) and not compare(case, made, theirs):
            return Result("onnxruntime differs", difference)
        return Result("failure", difference)
    return Result("passed")


@pytest.mark.slow
@pytest.mark.evidence
def test_every_node() -> None:
    """Each case passes or is skipped with a reason; none differs from onnxruntime."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {case.name: result_of(case) for case in collect_testcases()}
    print(Counter(r.kind for r in found.values()))
    for name, result in sorted(found.items()):
        if result.kind != "passed":
            print(f"{name}: {result.kind}: {result.reason}")
    assert not {n: r for n, r in found.items() if r.kind in ("failure", "exception", "silent error")}
