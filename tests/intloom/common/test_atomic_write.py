"""Files appear whole or not at all, are readable by all users, and never replace another kind of file."""

import os
import stat

import pytest

from intloom.common.atomic_write import atomic_path, check_output_path, write_bytes, write_text
from intloom.common.errors import DiskError, UsageError


def test_a_file_appears_whole_and_readable_for_all(tmp_path):
    path = tmp_path / "new" / "é ü" / "file.txt"
    write_text(path, "grün")
    assert path.read_bytes() == "grün".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"old")
    with pytest.raises(TypeError), atomic_path(path) as temporary:
        temporary.write_bytes(None)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "data").mkdir()
    link, path = tmp_path / "link", tmp_path / "data" / "file"
    link.symlink_to(path)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match=f"must be a file, not the folder {tmp_path}"):
        write_bytes(tmp_path, b"")
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}*"))


def test_a_device_or_pipe_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path / "../../../../../../../../dev/null"):
        with pytest.raises(UsageError, match="device or pipe"):
            check_output_path(path)
    with pytest.raises(UsageError, match="device or pipe"):
        write_bytes(pipe, b"")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_on_the_way_is_a_disk_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match="cannot write"):
        write_bytes(tmp_path / "file" / "below", b"")
