"""The forecast against RTL: five networks on 20 random configurations, in docs/data/forecast.json: `make forecast`.

Configurations and memories are drawn; those for which a network does not compile are recorded with the reason. RTL
runs only where Verilog or program have changed; the forecast is always the present one.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from intloom.common import evidence
from intloom.common.errors import IntloomError, SimulationError
from intloom.compiler.program.memory import encode_all
from intloom.compiler.program.program import MemoryTiming, Program
from intloom.exploration.verify import run_point
from intloom.flow.compiling import compile_model
from intloom.flow.networks import quantized_network
from intloom.hw.spec.params import HardwareParams, changed
from intloom.sim.processes import Processes, Work
from intloom.sim.random_programs.hardware import random_parameters
from intloom.sim.rtl.verilog import verilog_of

NETWORKS = (("yolov8n", 64), ("mobilenet_v2", 64), ("efficientnet_lite0", 64), ("resnet18", 32), ("shufflenet_v2", 64))
CONFIGURATIONS = 20
RESULTS = Path("docs/data/forecast.json")
_SOURCES = ("hw/npu.py", "compiler/schedule", "compiler/program")


def main() -> int:
    """Measure what is not current, and print the error of every run."""
    parser = argparse.ArgumentParser(prog="python -m tools.forecast_error", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--count", type=int, default=CONFIGURATIONS, help="configurations")
    given = parser.parse_args()
    for network in NETWORKS:
        quantized_network(*network)  # once, before processes read it
    kept = (run for row in evidence.read(RESULTS).values() for run in row.values.get("runs", ()))
    known = {run["content"]: run for run in kept if "content" in run}
    work = Work(do=partial(measure, known), key=str, dead=lambda _seed: {"reason": "the process died"})
    while True:
        rows = {name: row for name, row in evidence.read(RESULTS).items() if row.is_current(Path.cwd())}
        missing = given.count - sum("runs" in row.values for row in rows.values())
        if missing <= 0:
            return 0
        seeds = [*islice((seed for seed in count() if f"seed {seed}" not in rows), missing)]
        for seed, values in work.results(seeds, Processes(given.jobs)):
            evidence.record(RESULTS, f"seed {seed}", evidence.measured(values, "make forecast", Path.cwd(), _SOURCES))
            print(f"seed {seed} {values.get('reason', '')}", flush=True)
            for run in values.get("runs", ()):
                print(f"  {run['network']}: {run['cycles']:,} cycles, {run['error']:+.2%}", flush=True)


def draw(seed: int) -> tuple[HardwareParams, MemoryTiming]:
    """A random configuration, with memories of which networks have some use, and a memory behind its port."""
    rng = random.Random(seed)
    changes = {name: 1 << rng.randint(5, 8) for name in ("scratch_kib", "weight_kib")}
    timing = MemoryTiming(read_latency=rng.choice((50, 100, 200)), bandwidth=rng.choice((0, 1, 0.5, 0.25)))
    always = {"mantissa_bits": 24, "acc_bits": 32, "vector_multiply": True, "vector_average": True}
    return changed(random_parameters(seed), {**changes, **always}), timing


def measure(known: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Every network on one configuration, or why one does not compile; a byte that differs raises.

    `known` has runs by their content.
    """
    params, timing = draw(seed)
    models = {f"{name} {size}": quantized_network(name, size) for name, size in NETWORKS}
    try:
        made = {name: compile_model(model, params, memory=timing) for name, model in models.items()}
    except IntloomError as error:
        return {"reason": str(error)}
    runs, verilog = list[dict[str, Any]](), verilog_of(params)
    for name, bundle in made.items():
        content, predicted = content_of(verilog, bundle.programs, timing), bundle.program.predicted_cycles
        if (run := known.get(content)) is None:
            run = run_point("", name, bundle, timing).to_dict()
        if not run["equal"]:
            raise SimulationError(f"seed {seed}: bytes differ in {name}")
        runs.append(run | {"predicted": predicted, "error": predicted / run["cycles"] - 1, "content": content})
    return {"parameters": params.to_dict(), "memory": asdict(timing), "runs": runs}


def content_of(verilog: str, programs: Iterable[Program], memory: object) -> str:
    """A hash of what the cycles of a run follow from: hardware, programs and memory."""
    parts = [verilog.encode(), repr(memory).encode(), *(encode_all(p) + p.image for p in programs)]
    return evidence.content_hash(parts)


if __name__ == "__main__":
    sys.exit(main())
