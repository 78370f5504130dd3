"""A process that takes a moment to clean up, and is sent one signal after another."""

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """
import sys, time
from pathlib import Path
from intloom.common.temporary_files import temporary_folder
{setup}
with {block}, temporary_folder(parent=Path(sys.argv[1])):
    try:
        print("working", flush=True)
        time.sleep(30)
    finally:
        print("cleaning up", flush=True)
        time.sleep(0.3)
        print("clean", flush=True)
"""


@dataclass(frozen=True)
class End:
    """How it ended."""

    code: int
    said: list[str]
    left: list[Path]
    """What it left in its folder."""


def disturb(setup: str, block: str, signals: list[signal.Signals], folder: Path) -> End:
    """Sends `signals` to a process that works in `block`: the first at work, the others while it cleans up."""
    script = _SCRIPT.format(setup=setup, block=block)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip()]
        process.send_signal(signals[0])
        said.append(process.stdout.readline().strip())
        for number in signals[1:]:
            process.send_signal(number)
            time.sleep(0.05)
        said += process.communicate(timeout=20)[0].split()
    return End(process.returncode, said, list(folder.iterdir()))
