"""A stream of frames: results in order, the host at work while the accelerator runs, and the command for a folder."""

import json
import threading

import numpy as np
import pytest

import intloom
from intloom.cli import main
from intloom.common.errors import ExitCode, UsageError
from intloom.flow.frames import FrameRate, in_turn
from intloom.flow.inputs import as_input

PATIENCE_S = 60


def test_results_come_in_the_order_of_the_frames():
    assert list(in_turn(range(5), lambda frame: frame * frame)) == [0, 1, 4, 9, 16]
    assert list(in_turn([], str)) == []


def test_the_next_frame_is_taken_and_the_last_result_used_while_one_runs():
    next_taken, last_used = threading.Event(), threading.Event()

    def frames():
        yield 0
        next_taken.set()
        yield 1
        # The caller uses the first result after the second frame was passed on.
        yield 2

    def run(frame):
        if frame == 0:
            assert next_taken.wait(PATIENCE_S)
        if frame == 1:
            assert last_used.wait(PATIENCE_S)
        return frame

    results = []
    for result in in_turn(frames(), run):
        last_used.set()
        results.append(result)
    assert results == [0, 1, 2]


def test_an_error_comes_in_the_place_of_its_frame():
    results = in_turn([1, 0, 2], lambda frame: 1 / frame)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_the_slower_one_gives_the_rate():
    assert FrameRate(0.01, 0.04).overlapped == pytest.approx(25)
    assert FrameRate(0.04, 0.01).overlapped == pytest.approx(25)
    assert FrameRate(0.04, 0.01).one_by_one == pytest.approx(20)
    assert FrameRate(0.04, 0.01).alone == pytest.approx(25)


@pytest.fixture(scope="module")
def program(programs):
    return programs("tiny")


@pytest.fixture
def folder(program, tmp_path, rng):
    """Three frames, and a file that is none."""
    (tmp_path / "notes.txt").write_text("no frame")
    shape = next(iter(intloom.Session(program, backend="golden").inputs.values()))
    for name in ("b", "a", "c"):
        np.save(tmp_path / f"{name}.npy", np.array([rng.random() for _ in range(np.prod(shape))], "f4").reshape(shape))
    return tmp_path


def test_a_session_runs_a_stream(program, folder):
    session = intloom.Session(program, backend="golden")
    (name,) = session.inputs
    feeds = [{name: np.load(path)} for path in sorted(folder.glob("*.npy"))]
    for outputs, feed in zip(session.run_frames(None, iter(feeds)), feeds, strict=True):
        np.testing.assert_array_equal(outputs[0], session.run(None, feed)[0])


@pytest.mark.slow
def test_the_command_runs_a_folder_in_the_rtl(program, folder, capsys, tmp_path):
    words = ["run", str(program), "--frames", str(folder), "--check", "-o", str(tmp_path / "runs"), "--json", "-q"]
    assert main(words) == ExitCode.OK
    made = json.loads(capsys.readouterr().out)
    assert [row["frame"] for row in made["frames"]] == ["a.npy", "b.npy", "c.npy"]
    assert all(row["mismatches"] == 0 < row["compared_bytes"] for row in made["frames"])
    rate = made["frames_per_second"]
    assert rate["host_s"] > 0
    assert rate["one_by_one"] < rate["overlapped"] <= rate["alone"]
    plain = ["run", str(program), "--backend", "golden", "-i", str(folder / "b.npy"), "-o", str(tmp_path / "one"), "-q"]
    assert main(plain) == ExitCode.OK
    np.testing.assert_array_equal(*(np.load(tmp_path / d / "output0.npy") for d in ("runs/b.npy", "one")))


def test_without_cycles_there_is_no_rate(program, folder, capsys):
    assert main(["run", str(program), "--frames", str(folder), "--backend", "golden"]) == ExitCode.OK
    shown = capsys.readouterr()
    assert "b.npy" in shown.out + shown.err
    assert "frames/s" not in shown.out + shown.err


def test_a_batch_runs_image_by_image(program, folder, capsys, tmp_path):
    batch = np.concatenate([np.load(path) for path in sorted(folder.glob("?.npy"))])
    for name, images in (("batch", batch), ("one", batch[0])):
        np.save(folder / f"{name}.npy", images)
        words = [
            "run",
            str(program),
            "--frames",
            str(folder / f"{name}.npy"),
            "--backend",
            "isa",
            "--check",
            "--json",
            "-q",
        ]
        assert main([*words, "-o", str(tmp_path / "runs")]) == ExitCode.OK
        rows = json.loads(capsys.readouterr().out)["frames"]
        assert [row["frame"] for row in rows] == [f"{name}-{n}" for n in range(3 if name == "batch" else 1)]
        assert all(row["mismatches"] == 0 < row["compared_bytes"] for row in rows)
    outputs = [np.load(tmp_path / "runs" / f / "output0.npy") for f in ("batch-0", "batch-1", "one-0")]
    np.testing.assert_array_equal(outputs[0], outputs[2])
    assert (outputs[0] != outputs[1]).any()
    for wrong, said in ((batch[:, :, 0], "must have shape [1, 3,"), (batch[:0], "must hold images")):
        np.save(folder / "wrong.npy", wrong)
        assert main(["run", str(program), "--frames", str(folder / "wrong.npy")]) == ExitCode.USAGE
        assert said in capsys.readouterr().err


def test_a_bad_frame_ends_in_one_line(program, folder, capsys):
    (folder / "d.npy").write_bytes(b"no array")
    assert main(["run", str(program), "--frames", str(folder), "--backend", "golden"]) == ExitCode.BAD_FILE
    assert "d.npy cannot be read: it holds no .npy array" in capsys.readouterr().err


def test_the_error_about_several_images_names_the_option_for_them():
    with pytest.raises(UsageError, match="run each of its 3 images with --frames"):
        as_input("x", np.zeros((3, 1, 2), np.float32), (1, 1, 2))
    for wrong, shape in (((3, 1, 3), (1, 1, 2)), ((2,), ()), ((), (1,))):
        with pytest.raises(UsageError, match=r"must have shape \[[^]]*\], not \[[^]]*\]$"):
            as_input("x", np.zeros(wrong, np.float32), shape)


def test_a_mask_takes_booleans_and_nothing_else_does():
    mask = np.array([[True, False]])
    assert as_input("mask", mask, (1, 2), boolean=True) is mask
    with pytest.raises(UsageError, match="must hold real numbers, not bool"):
        as_input("x", mask, (1, 2))
