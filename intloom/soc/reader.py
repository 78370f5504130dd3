"""The simulated system reads a line of text: a trained recognizer on the accelerator, the letters from its firmware."""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx
from PIL import Image

from intloom.common.errors import EnvironmentFault, IntloomError
from intloom.hw.spec.params import preset
from intloom.pictures import open_picture
from intloom.reading.drawing import draw_line
from intloom.reading.networks import RECOGNIZER_SHAPE, characters, decoded, recognizer_input, scaled_line
from intloom.reading.pretrained import pretrained
from intloom.reading.read import ReadOptions, Steps, sample_lines
from intloom.sim.rtl.soc import SocResult
from intloom.soc.__main__ import main as check_network
from intloom.soc.firmware import build_reader, picture_bytes, picture_size
from intloom.soc.system import run_firmware

SMALLEST = preset("nano").replace(vector_softmax=True, vector_norm=True, constant_check=True)
"""The smallest hardware that runs the recognizer in one region, and finds damaged constants."""
_SEED = 5
_SAMPLES = 16
_PICTURE_BYTES = picture_size(*RECOGNIZER_SHAPE[2:])
TEXT = "text: "
"""Before the text on the console."""


@dataclass(frozen=True)
class LineRead:
    """A line as the float model, the golden model and the system read it."""

    float_text: str
    golden_text: str
    text: str
    run: SocResult


class Reader:
    """Firmware with a quantized recognizer; it reads any picture of a line without another build.

    Parameters
    ----------
    model
        The float recognizer.
    folder
        For the files of the model, the firmware and the runs.
    """

    def __init__(self, model: bytes, folder: Path) -> None:
        self._folder = folder.resolve()
        steps = Steps(ReadOptions(folder=self._folder, params=SMALLEST, backend="golden"), _ignore, _ignore)
        self._network = steps.prepare("recognizer", model, sample_lines(_SAMPLES))
        self._letters = characters(onnx.load_from_string(model))
        (self._program,) = self._network.bundle.programs
        self.firmware = build_reader(self._program, self._letters, _PICTURE_BYTES, self._folder / "firmware")

    def read(self, line: Image.Image, name: str, say: Callable[[str], None] | None = None) -> LineRead:
        """Run the firmware with a picture of a line in memory; `say` gets each line of its console.

        Raises
        ------
        SimulationError
            The firmware did not end with success.
        """
        run = run_firmware(self.firmware, self._program.params, self._folder / name, as_bytes(line), say=say)
        tensor = recognizer_input(line)
        golden, _ = self._network.run(tensor, f"{name}-golden")
        (text,) = (row.removeprefix(TEXT) for row in run.console.splitlines() if row.startswith(TEXT))
        by_float = decoded(self._network.by_float(tensor)[0], self._letters)
        return LineRead(by_float, decoded(golden[0], self._letters), text, run)


def _ignore(*_told: object) -> None:
    """No step is shown."""


def as_bytes(line: Image.Image) -> bytes:
    """A line as the firmware finds it in memory."""
    return picture_bytes(scaled_line(line))


def main(arguments: list[str] | None = None) -> int:
    """Read pictures of lines on the system, and compare with what golden model and float model read."""
    parser = argparse.ArgumentParser(prog="python -m intloom.soc.reader", description=__doc__)
    parser.add_argument("pictures", nargs="*", type=Path, metavar="PICTURE", help="a line each; default: one drawn")
    parser.add_argument("--seed", type=int, default=_SEED, help="seed of the drawn line")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/soc"))
    chosen = parser.parse_args(arguments)
    started = time.monotonic()

    def say(line: str) -> None:
        print(line, flush=True)

    try:
        lines = [open_picture(path) for path in chosen.pictures] or [draw_line(chosen.seed)[1]]
        try:
            model = pretrained().recognizer
        except EnvironmentFault as error:
            say(f"{error}; checking a network of the zoo instead")
            return check_network(["-o", str(chosen.output)])
        reader = Reader(model, chosen.output)
        reads = [reader.read(line, f"line-{i}", say) for i, line in enumerate(lines, 1)]
    except IntloomError as error:
        print(f"soc: {error}", file=sys.stderr)
        return int(error.exit_code)
    for read in reads:
        say(f"{read.run.cycles:,} cycles in {read.run.seconds:.0f} s; the float model reads {read.float_text!r}")
    say(f"firmware {reader.firmware.code_bytes:,} bytes, {time.monotonic() - started:.0f} s in all")
    return int(any(read.text != read.golden_text for read in reads))


if __name__ == "__main__":
    sys.exit(main())
