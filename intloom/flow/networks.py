"""Networks of the zoo as integer graphs, quantised once and kept in the cache."""

from __future__ import annotations

import tempfile
from pathlib import Path

from compiler.frontend import fold_model
from compiler.importer import load_model
from compiler.ir import IntGraph
from hw.spec.arith import Match
from intloom.cache import Cache, Recipe
from intloom.files import write_bytes
from intloom.preprocess import tool_versions
from intloom.quantization import QuantizeOptions, quantize
from intloom.zoo import build
from sim.result import Arrays

from .feeding import seeded_input
from .host import HostSide

_SAMPLES = 2
_STEP = "zoo"


def load_network(name: str, imgsz: int, match: Match = Match.ORT, seed: int = 0) -> tuple[IntGraph, Arrays]:
    """The integer graph of a zoo network, and seeded inputs for it."""
    folded = fold_model(load_model(quantized_network(name, imgsz)), match=match)
    host = HostSide(folded)
    feeds = {n: seeded_input(shape, seed) for n, shape in host.input_shapes().items()}
    return folded.graph, host.before(feeds)


def quantized_network(name: str, imgsz: int, cache: Cache | None = None) -> Path:
    """The quantised form of a zoo network, in the cache."""
    cache = cache or Cache()
    options = {"imgsz": str(imgsz), "samples": str(_SAMPLES)}
    recipe = Recipe(source=f"zoo:{name}", step=_STEP, options=options, versions=tool_versions())
    found = cache.get(recipe)
    if found is not None:
        return found[0]
    with tempfile.TemporaryDirectory(prefix="intloom-") as folder:
        floats, target = Path(folder) / f"{name}.onnx", Path(folder) / f"{name}.q.onnx"
        write_bytes(floats, build(name, imgsz).SerializeToString(deterministic=True))
        done = quantize(floats, target, options=QuantizeOptions(samples=_SAMPLES), cache=cache)
        return cache.put(recipe, target.read_bytes(), done.seconds)
