"""A photograph read by the accelerator: a trained detector finds the lines, a recognizer reads each of them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from PIL import Image

from intloom.arrays import save_array
from intloom.compiler.program.program import MemoryTiming
from intloom.compiler.reference import open_session
from intloom.demo import hardware_option
from intloom.exploration.advice import advise
from intloom.files import check_folder, write_bytes
from intloom.flow.bundle import load_bundle
from intloom.flow.compiling import Tell, compile_model, store
from intloom.flow.record import Notes, save_run
from intloom.flow.running import execute, open_backend
from intloom.hw.spec.params import PRESETS, HardwareParams
from intloom.notebook import html_table
from intloom.pictures import draw_boxes, open_picture
from intloom.quantization import quantize
from intloom.reading.drawing import draw_line, draw_photograph
from intloom.reading.networks import (
    DETECTOR_SHAPE,
    Box,
    Floats,
    Line,
    characters,
    crop,
    decoded,
    detector_input,
    mask_overlap,
    recognizer_input,
    text_boxes,
)
from intloom.reading.pretrained import Pretrained
from intloom.report import write_report
from intloom.report.reading import write_reading
from intloom.sim.backend import backend_kind

READ_PRESET = "base"
_CALIBRATION = 1000
"""Seeds of calibration pictures start here: they are not those that are read."""
_SIMULATIONS = 2
"""Lines that are simulated at the same time."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of reading a picture."""

    folder: Path = Path("out/demo")
    picture: Path | None = None
    """None: a photograph drawn from `seed`."""
    seed: int = 6
    params: HardwareParams = PRESETS[READ_PRESET]
    backend: str = "rtl"
    lines: int = 8
    """Maximum number of lines that are read."""
    shape: tuple[int, ...] = DETECTOR_SHAPE
    """Input of the detector."""
    pages_to_calibrate: int = 8
    lines_to_calibrate: int = 64


@dataclass(frozen=True)
class Reading:
    """The lines of a picture, and the page about them."""

    lines: tuple[Line, ...]
    overlap: float
    """Of the detector's mask of text with the float model's: intersection over union."""
    detector: Mapping[str, Any]
    """Record of the detector's run."""
    page: Path

    def as_dict(self) -> dict[str, Any]:
        """All results as plain values, for JSON."""
        lines = [
            {"text": n.text, "float": n.float_text, "corners": n.box.corners, "score": n.box.score} | _figures(n.record)
            for n in self.lines
        ]
        detector = {"overlap": self.overlap} | _figures(self.detector)
        wrong = sum(run["mismatches"] for run in (detector, *lines))
        return {"lines": lines, "detector": detector, "mismatches": wrong, "report": str(self.page)}

    def _repr_html_(self) -> str:
        """The lines as a table, for notebooks."""
        names = ("", "float model", "accelerator", ">cycles", ">bytes compared", ">bytes that differ")
        rows = [
            (str(i), escape(n.float_text), escape(n.text), *(f"{n.record[k] or 0:,}" for k in _COUNTS))
            for i, n in enumerate(self.lines, 1)
        ]
        return html_table(names, rows)


_COUNTS = ("cycles", "compared_bytes", "mismatches")


def _figures(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("cycles", "mac_use", "compared_bytes", "mismatches", "wall_s")}


def read_text(models: Pretrained, options: ReadOptions, *, say: Callable[[str], None], tell: Tell) -> Reading:
    """Find and read the text of a picture, and write a page about it; `say` gets the equivalent command of each step.

    Raises
    ------
    FileFormatError
        The picture cannot be read.
    """
    check_folder(options.folder, "the output")
    picture = draw_photograph(options.seed)[1] if options.picture is None else open_picture(options.picture)
    steps = Steps(options, say, tell)
    detector = steps.prepare("detector", models.detector, sample_pages(options.pages_to_calibrate, options.shape))
    recognizer = steps.prepare("recognizer", models.recognizer, sample_lines(options.lines_to_calibrate))
    whole = detector_input(picture, options.shape)
    tell("boxes", 0, 1)
    scores, found = detector.run(whole, "detector")
    overlap = mask_overlap(scores, detector.by_float(whole))
    boxes = text_boxes(scores[0, 0], picture.size, options.lines)
    lines = _read_lines(recognizer, models.recognizer, picture, boxes, tell)
    draw_boxes(
        picture, [box.corners for box in boxes], [str(i + 1) for i in range(len(boxes))], options.folder / "picture.png"
    )
    for name in ("detector", *_names(boxes)):
        write_report(options.folder / name)
    return Reading(lines, overlap, found, write_reading(options.folder, lines, overlap, found, whole.shape))


def sample_pages(count: int, shape: tuple[int, ...] = DETECTOR_SHAPE) -> list[Floats]:
    """Drawn photographs that calibrate a detector."""
    return [detector_input(draw_photograph(_CALIBRATION + i)[1], shape) for i in range(count)]


def sample_lines(count: int) -> list[Floats]:
    """Drawn lines that calibrate a recognizer."""
    return [recognizer_input(draw_line(_CALIBRATION + i)[1]) for i in range(count)]


def _names(boxes: Sequence[Box]) -> list[str]:
    return [f"line-{i + 1}" for i in range(len(boxes))]


def _read_lines(
    network: "Network", model: bytes, picture: Image.Image, boxes: Sequence[Box], tell: Tell
) -> tuple[Line, ...]:
    letters = characters(onnx.load_from_string(model))
    inputs = [recognizer_input(crop(picture, box)) for box in boxes]
    lines: list[Line] = []
    tell("lines", 0, len(boxes))
    with ThreadPoolExecutor(_SIMULATIONS) as pool:
        for scores, record in pool.map(network.run, inputs, _names(boxes)):
            read = decoded(network.by_float(inputs[len(lines)])[0], letters)
            lines.append(Line(boxes[len(lines)], read, decoded(scores[0], letters), record))
            tell("lines", len(lines), len(boxes))
    return tuple(lines)


@dataclass(frozen=True)
class Steps:
    """What a user would run for each network."""

    options: ReadOptions
    say: Callable[[str], None]
    tell: Tell

    def prepare(self, name: str, model: bytes, samples: Sequence[Floats]) -> "Network":
        """Quantize a network with the samples, and compile it."""
        folder, params, shape = self.options.folder, self.options.params, samples[0].shape
        floats, arrays, quantized, program = (folder / f"{name}{end}" for end in (".onnx", ".npy", ".q.onnx", ".loom"))
        write_bytes(floats, model)
        save_array(arrays, np.concatenate(samples))
        sizes = ",".join(str(n) for n in shape)
        self.say(f"$ intloom quantize {floats} --shape x={sizes} --calibration {arrays} -o {quantized}")
        dims = {f"x.{axis}": size for axis, size in enumerate(shape)}
        quantize(floats, quantized, arrays, dims=dims, progress=self.tell)
        self.say(f"$ intloom compile {quantized} {hardware_option(params, folder)} -o {program}")
        store(compile_model(quantized, params, progress=self.tell), program)
        return Network(program, model, self.options.backend, self.say)


class Network:
    """A compiled network and its float model."""

    def __init__(self, program: Path, model: bytes, backend: str, say: Callable[[str], None]) -> None:
        self._path, self.bundle, self._say = program, load_bundle(program), say
        self._backend = open_backend(backend, self.bundle, keep_tensors=True)
        self._why = advise(self.bundle, MemoryTiming()) if backend_kind(backend).capabilities.cycle_accurate else ""
        self._floats = open_session(model)

    def run(self, tensor: Floats, name: str) -> tuple[Floats, dict[str, Any]]:
        """The output on the accelerator, compared byte for byte, and the record of the run in the folder `name`."""
        folder = self._path.parent / name
        given = folder.with_name(f"{name}-input.npy")
        save_array(given, tensor)
        command = f"intloom run {self._path} --input {given} --backend {self._backend.name} --check -o {folder}"
        self._say(f"$ {command}")
        done = execute(self.bundle, self._backend, {"x": tensor}, check=True)
        (output,) = done.model_outputs.values()
        notes = Notes(command=command, why=self._why)
        return np.asarray(output, np.float32), save_run(folder, self.bundle.program, done, notes)

    def by_float(self, tensor: Floats) -> Floats:
        """The output of the float model."""
        (output,) = self._floats.run(None, {"x": tensor})
        return np.asarray(output, np.float32)
