"""Models with a changed structure are refused with a reason, or run and equal onnxruntime."""

import logging
from collections import Counter

import pytest

from tests.support.mutant_outcome import outcome
from tests.support.structure_mutation import CHANGES, change

EACH_OF_5000 = 455
"""Mutants of each of the eleven kinds."""


def try_all(kind: str, first: int, count: int) -> Counter[str]:
    logging.disable(logging.WARNING)
    try:
        found = {seed: outcome(change(kind, seed), seed) for seed in range(first, first + count)}
    finally:
        logging.disable(logging.NOTSET)
    print(kind, Counter(o.kind for o in found.values()))
    faults = [f"{kind} {seed}: {o.kind}: {o.text}" for seed, o in found.items() if o.fault]
    assert not faults, "\n".join(faults)
    return Counter(o.kind for o in found.values())


@pytest.mark.parametrize("kind", CHANGES)
def test_some_changes(kind: str) -> None:
    try_all(kind, 0, 6)


@pytest.mark.slow
@pytest.mark.evidence
@pytest.mark.parametrize("kind", CHANGES)
def test_5000_changes(kind: str, seed: int) -> None:
    found = try_all(kind, seed, EACH_OF_5000)
    assert min(found["refused"], found["equal"]) > 0
