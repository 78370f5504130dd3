"""Choices of a quantization: words do as well as members, and a wrong one is refused."""

import pytest

from intloom.common.errors import UsageError
from intloom.quantization.options import Calibration, Form, Head, QuantizeOptions


def test_plain_words_are_the_choices_they_name():
    options = QuantizeOptions(form="qdq", calibration="entropy", head="whole")
    assert options.form is Form.QDQ
    assert options.calibration is Calibration.ENTROPY
    assert options.head is Head.WHOLE


@pytest.mark.parametrize(
    "wrong",
    [
        {"form": "qqq"},
        {"head": None},
        {"weights": 5},
        {"samples": "many"},
        {"seed": 1.5},
        {"samples": 0},
        {"seed": -1},
        {"percentile": 99.0},
        {"calibration": "percentile", "percentile": 40.0},
    ],
)
def test_wrong_ones_are_refused_by_name(wrong):
    with pytest.raises(UsageError, match=list(wrong)[-1]):
        QuantizeOptions(**wrong)
