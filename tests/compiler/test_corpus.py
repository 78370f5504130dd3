"""Every model of the corpus: assignment of its nodes, comparison with onnxruntime, and the RTL."""

import logging

import pytest

import intloom
from intloom.common.errors import IntloomError, UnsupportedError
from intloom.compiler.frontend import Target
from intloom.compiler.refusals import Refusal
from tests.support.corpus import MODELS
from tests.support.corpus.builder import maker
from tests.support.corpus.expected import EXPECTED
from tests.support.corpus.summary import summary
from tests.support.mutant_outcome import feeds_of, outcome

COMPILED = [name for name, text in EXPECTED.items() if "Error: " not in text]
SAMPLE = ("QLinearConv, uint8 weights", "network", "stored movement, int8", "If, computed")


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_the_corpus_is_complete() -> None:
    assert list(EXPECTED) == list(MODELS)
    assert len(MODELS) >= 60


@pytest.mark.parametrize("name", MODELS)
def test_assignment_and_golden(name: str) -> None:
    """Compiles as expected; the golden model and the instruction simulator equal onnxruntime in every byte."""
    model = MODELS[name](maker(name))
    try:
        folded = intloom.compile(model, "nano").bundle.need_model("the assignment")
        found = summary(folded)
        rows = [a.row for a in folded.assignments if a.target in (Target.HOST, Target.UNSUPPORTED)]
    except IntloomError as error:
        rows = [error.row] if isinstance(error, UnsupportedError) else []
        found = f"{type(error).__name__}: {error}".replace('"', "'")
    assert found == EXPECTED[name]
    assert {r.number for r in Refusal} >= set(rows)
    if name in COMPILED:
        result = outcome(model, 1)
        assert result.kind == "equal", result


def check_rtl(name: str, preset: str) -> None:
    program = intloom.compile(MODELS[name](maker(name)), preset)
    session = intloom.Session(program, backend="rtl", check=True)
    session.run(None, feeds_of(program, 2))
    assert session.last is not None
    assert session.last.record["mismatches"] == 0
    assert session.last.record["compared_bytes"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_rtl_of_some(name: str) -> None:
    check_rtl(name, "nano")


@pytest.mark.slow
@pytest.mark.evidence
@pytest.mark.parametrize("preset", ["nano", "small"])
@pytest.mark.parametrize("name", COMPILED)
def test_rtl_of_all(name: str, preset: str) -> None:
    check_rtl(name, preset)
