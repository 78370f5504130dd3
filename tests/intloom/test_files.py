"""The user's files: what may be written, what can be read."""

import pytest

from intloom.common.errors import UsageError
from intloom.files import check_output


def test_an_output_may_not_be_an_input(tmp_path):
    source, link = tmp_path / "model", tmp_path / "link"
    source.write_text("precious")
    link.symlink_to(source)
    for target in (source, link, tmp_path / "x" / ".." / "model"):
        with pytest.raises(UsageError, match="another file than the input"):
            check_output(target, tmp_path / "other", source)
    check_output(tmp_path / "new", source)
