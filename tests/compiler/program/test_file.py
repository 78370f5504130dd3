"""The program file: an exact copy, or an error with the reason."""

import dataclasses

import pytest

from intloom.common.errors import DiskError, FileFormatError, HardwareMismatchError
from intloom.compiler.program.file import load, save, to_bytes
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker


@pytest.fixture(scope="module")
def program() -> Program:
    maker = GraphMaker(0)
    x = maker.conv(maker.input(3, 16, 16), 16, 3)
    return compile_graph(maker.graph(maker.max_pool(x, 3, pad=1)), preset("base"))


@pytest.fixture
def path(program, tmp_path):
    path = tmp_path / "net.loom"
    save(program, path)
    return path


def test_load_gives_back_the_program(program, path):
    again = load(path, preset("base"))
    for field in dataclasses.fields(Program):
        assert getattr(again, field.name) == getattr(program, field.name), field.name
    assert to_bytes(again) == path.read_bytes()


def test_saving_leaves_nothing_but_the_file(path):
    assert [p.name for p in path.parent.iterdir()] == ["net.loom"]


def test_image_can_be_mapped(program, path):
    at = path.read_bytes().rindex(program.image)
    assert at % 64 == 0
    assert at + len(program.image) == path.stat().st_size


@pytest.mark.parametrize("length", [0, 5, 40, 71, 200, -1])
def test_truncated_file_is_refused(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(FileFormatError, match=r"truncated[^_]|but is none"):
        load(path)


def test_file_with_more_at_its_end_is_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(FileFormatError, match="trailing data"):
        load(path)


def test_every_altered_byte_is_noticed(path):
    data = path.read_bytes()
    for at in [*range(128), *range(128, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises(FileFormatError):
            load(path)


def test_foreign_and_missing_files_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="cannot read"):
        load(tmp_path / "absent.loom")
    (tmp_path / "other.loom").write_bytes(b"\x7fELF" + bytes(500))
    with pytest.raises(FileFormatError, match="is none: make it with intloom compile"):
        load(tmp_path / "other.loom")


def test_other_hardware_is_refused_and_the_difference_named(path):
    own = preset("base")
    other = own.replace(scratch_kib=2 * own.scratch_kib)
    with pytest.raises(HardwareMismatchError, match=f"scratch_kib is {own.scratch_kib}, not {other.scratch_kib}"):
        load(path, other)


def test_a_folder_that_cannot_be_made_is_a_disk_error(program, tmp_path):
    (tmp_path / "no").write_text("a file")
    with pytest.raises(DiskError, match="cannot write"):
        save(program, tmp_path / "no" / "net.loom")
