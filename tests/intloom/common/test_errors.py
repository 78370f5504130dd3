"""Errors that pass between processes."""

import pickle

import pytest

from intloom.common.errors import MismatchError, UnsupportedError


@pytest.mark.parametrize("error", [UnsupportedError("found", 7), MismatchError("found", layer="conv", got=3)])
def test_a_pickled_error_keeps_its_message_fields_and_notes(error):
    error.add_note("in a task")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and str(copy) == "found" and vars(copy) == vars(error)
