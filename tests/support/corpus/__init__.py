"""Small models of every form of quantization that files in use have."""

from tests.support.corpus.activations import MODELS as _ACTIVATIONS
from tests.support.corpus.builder import Builder
from tests.support.corpus.operators import MODELS as _OPERATORS
from tests.support.corpus.structure import MODELS as _STRUCTURE

MODELS = {**_OPERATORS, **_ACTIVATIONS, **_STRUCTURE}
"""Builders of the models by name."""

__all__ = ["MODELS", "Builder"]
