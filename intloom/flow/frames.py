"""A stream of frames: the host works on one frame while the accelerator runs another."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from intloom.common.errors import UsageError
from intloom.pictures import sample_files

Frame = TypeVar("Frame")
Result = TypeVar("Result")


def in_turn(frames: Iterable[Frame], run: Callable[[Frame], Result]) -> Iterator[Result]:
    """The result of `run` for each frame, in order.

    `run` has a thread of its own: the caller's thread takes the next frame from `frames` and uses the last result while
    it runs.
    """
    with ThreadPoolExecutor(1) as pool:
        ahead: Future[Result] | None = None
        for frame in frames:
            running = pool.submit(run, frame)
            if ahead is not None:
                yield ahead.result()
            ahead = running
        if ahead is not None:
            yield ahead.result()


def frame_files(folder: Path) -> list[Path]:
    """The frames in a folder, in the order of their names.

    Raises
    ------
    UsageError
        It is no folder, or holds no frame.
    """
    if not folder.is_dir():
        raise UsageError(f"frames {folder} must be a folder of images, .npy or .npz files, or one with several images")
    if files := sample_files(folder):
        return files
    raise UsageError(f"frames {folder} must hold images, .npy or .npz files, but holds none")


@dataclass(frozen=True)
class FrameRate:
    """Frames per second of an accelerator at a clock, alone and with its host."""

    accelerator_s: float
    """Of a frame: its cycles at the clock."""
    host_s: float
    """Of a frame, on this computer: its file, and the host parts before and after the accelerator."""

    @property
    def alone(self) -> float:
        """Without the host."""
        return 1 / self.accelerator_s

    @property
    def overlapped(self) -> float:
        """With the host at work on another frame while the accelerator runs one."""
        return 1 / max(self.accelerator_s, self.host_s)

    @property
    def one_by_one(self) -> float:
        """With accelerator and host waiting for each other."""
        return 1 / (self.accelerator_s + self.host_s)

    def as_dict(self) -> dict[str, float]:
        """All of them as plain values, for JSON."""
        return {name: getattr(self, name) for name in ("accelerator_s", "host_s", "alone", "overlapped", "one_by_one")}
