"""The README's table of measured figures, made by running every row.

`make figures` builds, quantizes, compiles and simulates each network, checks every byte, records the figures in
docs/data/figures.json, and writes the table between the markers in README.md. Nothing in it is written by hand. A row
is kept while Verilog, programs and memory are those that were measured, whatever has changed in the sources. The
picture of a report is the first row's.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no stubs
from PIL import Image

import intloom
from intloom.common import evidence, markdown
from intloom.common.errors import EnvironmentFault
from intloom.common.temporary_files import temporary_folder
from intloom.demo import DEMO_PRESET, DemoOptions
from intloom.files import write_text
from intloom.flow.inputs import read_inputs
from intloom.flow.networks import quantized_network
from intloom.hw.spec.params import preset
from intloom.reading.pretrained import pretrained
from intloom.reading.read import ReadOptions, read_text
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of
from tools import tutorial
from tools.forecast_error import content_of

ROOT = Path(__file__).parents[1]
README, PICTURE = ROOT / "README.md", ROOT / "docs/assets/report.png"
FIGURES = ROOT / "docs/data/figures.json"
_KEPT = ("mac_use", "dram_bytes", "cycles", "wall_s")
_SOURCES = ("hw/npu.py", "compiler", "intloom/zoo", "intloom/quantization")
"""What the figures depend on, with what they import."""
READ = "reading"
_WIDTH, _REPORT_HEIGHT, _READING_HEIGHT = 1360, 1160, 1250
_COLORS = 128
"""Of a picture: a third of the bytes, and no difference that is seen."""
OLDER = "\nSome rows were measured on an older design: `make stale` lists them, with the command that renews them.\n"
_HEADS = ("network", "preset", "array", "cycles", "array utilization", "memory traffic", "simulated in")


@dataclass(frozen=True)
class Row:
    """One measurement."""

    label: str
    network: str
    imgsz: int
    preset: str
    memory: MemorySettings = field(default_factory=MemorySettings)

    @property
    def key(self) -> str:
        """Its name among the recorded figures."""
        return f"{self.label}, {self.preset}"


DEMO = DemoOptions(folder=Path())
SLOW_MEMORY = MemorySettings(read_latency=400, bandwidth=0.5, seed=1)
ROWS = (
    Row("YOLOv8n, 640x640", "yolov8n", 640, "base"),
    Row("the same, latency 400, half the bandwidth", "yolov8n", 640, "base", SLOW_MEMORY),
    Row("YOLOv8n, 640x640", "yolov8n", 640, "large"),
    Row("YOLOv8n, 416x416", "yolov8n", 416, "base"),
    Row("YOLOv8n, 320x320", "yolov8n", 320, "base"),
    Row("YOLOv8n, 160x160", "yolov8n", 160, "base"),
    Row("YOLOv8s, 320x320", "yolov8s", 320, "base"),
    Row("YOLOv8m, 320x320", "yolov8m", 320, "base"),
    Row("YOLOv8n-seg, 640x640", "yolov8n-seg", 640, "base"),
    Row("YOLOv8n-pose, 640x640", "yolov8n-pose", 640, "base"),
    Row("YOLOv8n-cls, 320x320", "yolov8n-cls", 320, "base"),
    Row("YOLOv8n-cls, 224x224", "yolov8n-cls", 224, "base"),
    Row("YOLO11n, 640x640", "yolo11n", 640, "base"),
    Row("YOLO11n-seg, 640x640", "yolo11n-seg", 640, "base"),
    Row("YOLO11n-pose, 640x640", "yolo11n-pose", 640, "base"),
    Row("YOLO26n, 640x640", "yolo26n", 640, "base"),
    Row("YOLO26n-seg, 640x640", "yolo26n-seg", 640, "base"),
    Row("YOLO26n-pose, 640x640", "yolo26n-pose", 640, "base"),
    Row("C2PSA of YOLO11n alone, for 640x640", "c2psa", 640, "base"),
    Row("YOLOX-nano, 416x416", "yolox_nano", 416, "base"),
    Row("SSD with MobileNetV1, 300x300", "ssd_mobilenet_v1", 300, "base"),
    Row("Text detector like PP-OCRv3's, 640x640", "ocr_detector", 640, "base"),
    Row("Text recognizer like PP-OCRv3's, 48x320", "ocr_recognizer", 320, "base"),
    Row("ResNet-18, 224x224", "resnet18", 224, "base"),
    Row("MobileNetV2, 224x224", "mobilenet_v2", 224, "base"),
    Row("MobileNetV3 large, 224x224", "mobilenet_v3_large", 224, "base"),
    Row("EfficientNet-lite0, 224x224", "efficientnet_lite0", 224, "base"),
    Row("ViT-tiny, 224x224", "vit_tiny", 224, "base"),
    Row("MobileViT-XXS, 256x256", "mobilevit_xxs", 256, "base"),
    Row("MiniLM-L6, 128 tokens", "minilm_l6", 128, "base"),
    Row("YOLOv8n, 96x96", DEMO.model, DEMO.imgsz, DEMO_PRESET),
)
"""The last row is what `intloom demo` prints."""


def require_idle(busy: Callable[[float], float] = psutil.cpu_percent) -> None:
    """Wait until nothing else uses the processors, because times would be those of a loaded machine; not for long."""
    for _ in range(_WATCHED_TIMES):
        percent = busy(_WATCHED_SECONDS)
        if percent <= _BUSY_PERCENT:
            return
    raise EnvironmentFault(f"{percent:.0f} % of the processors are in use; stop other programs, then measure again")


_WATCHED_TIMES, _WATCHED_SECONDS, _BUSY_PERCENT = 20, 2.0, 10.0


def compiled(row: Row, folder: Path) -> intloom.Program:
    """The program of a row; its model is in `folder`, since a report is headed with the name of the model's file."""
    model = folder / f"{row.network}-{row.imgsz}.onnx"
    shutil.copyfile(quantized_network(row.network, row.imgsz), model)
    return intloom.compile(model, row.preset)


def measure(row: Row, program: intloom.Program) -> intloom.Run:
    """A checked run; a byte that differs raises."""
    session = intloom.Session(program, check=True, rtl=RtlOptions(memory=row.memory))
    session.run(None, read_inputs((), session.get_inputs(), 0))
    assert session.last is not None  # run has set it
    return session.last


def renew(row: Row, *, again: bool = False) -> None:
    """Record a row as of today's sources; without `again` it is only measured if hardware, program or memory differ."""
    with temporary_folder() as folder:
        program = compiled(row, folder)
        content = content_of(verilog_of(program.params), program.bundle.programs, row.memory)
        if not again and evidence.keep(FIGURES, row.key, content, ROOT):
            return
        require_idle()
        run = measure(row, program)
        values = {name: run.record[name] for name in _KEPT}
        evidence.record(FIGURES, row.key, evidence.measured(values, "make figures", ROOT, _SOURCES, content))
        print(line(row, values), flush=True)
        if row is ROWS[0]:
            take_picture(run.report(folder), PICTURE, _REPORT_HEIGHT)


def line(row: Row, values: Mapping[str, Any]) -> str:
    """The row as Markdown."""
    p = preset(row.preset)
    use = f"{100 * values['mac_use']:.1f} %"
    shown = f"**{use}**" if values["mac_use"] >= _GOOD else use
    traffic = f"{values['dram_bytes'] / 1e6:.1f} MB"
    cells = (row.label, f"`{row.preset}`", f"{p.rows}x{p.cols}", f"{values['cycles']:,}", shown, traffic)
    return markdown.line(*cells, f"{values['wall_s']:.0f} s")


def table() -> str:
    """The recorded rows, in the order of `ROWS`, and whether some are older than their sources."""
    records = evidence.read(FIGURES)
    rows = (line(row, records[row.key].values) for row in ROWS if row.key in records)
    return markdown.table(_HEADS, rows) + ("" if all(row.is_current(ROOT) for row in records.values()) else OLDER)


_GOOD = 0.93
"""What the design promises for large pictures; printed bold."""


def take_picture(page: Path, target: Path, height: int) -> None:
    """The top of a page as README and manual show it, where there is a Chromium."""
    if (browser := shutil.which("chromium")) is None:
        print(f"{target.name} stays as it is: taking it needs chromium")
        return
    size = f"--window-size={_WIDTH},{height}"
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size]
    command += ["--virtual-time-budget=4000", f"--screenshot={target}", f"file://{page.resolve()}"]
    subprocess.run(command, check=True, capture_output=True)
    with Image.open(target) as picture:
        picture.convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE).save(target, optimize=True)


def main(chosen: Sequence[str] = ()) -> None:
    """Measure rows, rewrite them in the table, take the picture, rewrite the tutorial's output.

    Arguments select rows by their preset, and `reading` the picture that is read; without arguments, all are made whose
    hardware, program or memory has changed.
    """
    kept = evidence.read(FIGURES)
    for row in (row for row in ROWS if not chosen or row.preset in chosen):
        if chosen or row.key not in kept or not kept[row.key].is_current(ROOT):
            renew(row, again=bool(chosen))
    if not chosen or READ in chosen:
        with temporary_folder() as folder:
            done = read_text(pretrained(), ReadOptions(folder=folder), say=print, tell=lambda _stage, _done, _all: None)
            take_picture(done.page, ROOT / "docs/assets/reading.png", _READING_HEIGHT)
    write_text(README, markdown.filled(README.read_text(encoding="utf-8"), "figures", table()))
    tutorial.main()


if __name__ == "__main__":
    main(sys.argv[1:])
