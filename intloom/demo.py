"""Demonstration: a network of the zoo from a float model to a checked RTL run and its report."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intloom.compiler.program.program import MemoryTiming
from intloom.exploration.advice import advise
from intloom.files import check_folder, write_bytes, write_text
from intloom.flow.bundle import load_bundle
from intloom.flow.compiling import Tell, compile_model, store
from intloom.flow.inputs import read_inputs
from intloom.flow.record import Notes, save_run
from intloom.flow.running import execute, open_backend
from intloom.hw.spec.params import PRESETS, HardwareParams, preset_name
from intloom.quantization import QuantizeOptions, quantize
from intloom.report import write_report
from intloom.sim.result import ProgressCallback
from intloom.zoo import build

DEMO_PRESET = "small"


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of the demonstration."""

    folder: Path = Path("out/demo")
    model: str = "yolov8n"
    imgsz: int = 96
    params: HardwareParams = PRESETS[DEMO_PRESET]


def run_demo(
    options: DemoOptions, *, say: Callable[[str], None], tell: Tell, watch: ProgressCallback
) -> tuple[dict[str, Any], Path]:
    """Run all steps, and print the equivalent command of each; the record of the run and its report."""
    folder, name, params = options.folder, options.model, options.params
    check_folder(folder, "the output")
    floats, quantized, program = (folder / f"{name}{end}" for end in (".onnx", ".q.onnx", ".loom"))
    say(f"$ intloom zoo build {name} --imgsz {options.imgsz} -o {floats}")
    write_bytes(floats, build(name, options.imgsz).SerializeToString(deterministic=True))
    say(f"$ intloom quantize {floats} -o {quantized}")
    quantize(floats, quantized, options=QuantizeOptions(), progress=tell)
    say(f"$ intloom compile {quantized} {hardware_option(params, folder)} -o {program}")
    store(compile_model(quantized, params, progress=tell), program)
    say(f"$ intloom run {program} --backend rtl --check -o {folder / 'run'}")
    record = _simulate(program, folder / "run", watch)
    say(f"$ intloom report {folder / 'run'}")
    return record, write_report(folder / "run")


def hardware_option(params: HardwareParams, folder: Path) -> str:
    """The option of the command line for these parameters; a file in the folder where they are no preset's."""
    if preset_name(params) in PRESETS:
        return f"--preset {preset_name(params)}"
    write_text(folder / "hardware.toml", params.to_toml())
    return f"--config {folder / 'hardware.toml'}"


def _simulate(program: Path, folder: Path, watch: ProgressCallback) -> dict[str, Any]:
    bundle = load_bundle(program)
    feeds = read_inputs([], bundle.inputs, seed=0)
    backend = open_backend("rtl", bundle, keep_tensors=True)
    done = execute(bundle, backend, feeds, check=True, progress=watch)
    return save_run(folder, bundle.program, done, Notes(why=advise(bundle, MemoryTiming())))
