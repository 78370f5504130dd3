"""Forecast of one configuration on several models, in a process of a pool; results are kept in the cache."""

import gc
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from intloom.common.cache.store import Kind, cached_text
from intloom.common.collector import collector_paused
from intloom.common.errors import DiskError, IntloomError
from intloom.compiler.fold.graph_builder import FoldOptions
from intloom.compiler.frontend import fold_for, fold_options
from intloom.compiler.importer import load_model
from intloom.compiler.importer.model import Model
from intloom.compiler.ir import Conv, IntGraph, MatMul, Norm, Softmax
from intloom.compiler.program.program import MemoryTiming
from intloom.compiler.schedule import compile_graph
from intloom.compiler.schedule.stages.depthwise import is_expressible
from intloom.exploration.work import Work, work_of
from intloom.hw.spec.params import HardwareParams
from intloom.sim.processes import Work as PooledWork
from intloom.sim.regress.version import project_version

_WITHOUT_CYCLES = ("trace", "clock_gating", "lut_products", "memory_parity", "multiplier_bits", "axi_addr_bits")
"""Fields that change no cycle and no instruction: configurations that differ only in them share a forecast."""


@dataclass(frozen=True)
class Network:
    """A model, folded with all the options that the configurations need."""

    name: str
    path: Path
    weight: float
    """How often it runs, compared with the other models."""
    graphs: Mapping[FoldOptions, tuple[IntGraph, ...]]
    source: str
    """Hash of the file, and sizes of open dimensions."""


@dataclass(frozen=True)
class Task:
    """One configuration with the memory that it sees, in beats."""

    params: HardwareParams
    memory: MemoryTiming

    @property
    def key(self) -> str:
        """A hash of what the forecast depends on, apart from the models."""
        fields = {k: v for k, v in self.params.to_dict().items() if k not in _WITHOUT_CYCLES}
        text = json.dumps([fields, asdict(self.memory)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """The work of each model, or why one of them does not compile."""

    works: tuple[Work, ...] = ()
    reason: str = ""


def unused_functions(networks: Sequence[Network], params: HardwareParams) -> list[str]:
    """Optional functions of an accelerator, known to the area model, that no network uses."""
    nodes = [n for network in networks for graph in network.graphs[fold_options(params)] for n in graph.nodes]
    used = {
        "vector_softmax": any(isinstance(node, Softmax) for node in nodes),
        "vector_norm": any(isinstance(node, Norm) for node in nodes),
        "vector_depthwise": any(isinstance(node, Conv) and is_expressible(node, params) for node in nodes),
        "weight_sums": any(isinstance(node, MatMul) and node.zp_a for node in nodes),
    }
    return [name for name, of_a_network in used.items() if getattr(params, name) and not of_a_network]


def read_network(path: Path, weight: float, points: Sequence[HardwareParams], dims: Mapping[str, int]) -> Network:
    """A quantized model, folded for all these configurations."""
    return folded_for(*open_network(path, weight, dims), points)


def open_network(path: Path, weight: float, dims: Mapping[str, int]) -> tuple[Network, Model]:
    """A quantized model, folded for no configuration yet."""
    model = load_model(path, dims=dims)
    return Network(path.stem, path, weight, {}, f"{model.source} {sorted(dims.items())}"), model


def folded_for(network: Network, model: Model, points: Sequence[HardwareParams]) -> Network:
    """The network for these configurations; what it is folded for already is not folded again."""
    graphs: dict[FoldOptions, tuple[IntGraph, ...]] = {}
    for params in points:
        options = fold_options(params)
        if options in network.graphs:
            graphs[options] = network.graphs[options]
        elif options not in graphs:
            folded = fold_for(model, params)
            _ = folded.graph  # an error if no node can be accelerated
            graphs[options] = tuple(folded.regions)
    return replace(network, graphs=graphs)


def pooled(networks: Sequence[Network]) -> PooledWork[Task, Outcome]:
    """The forecast of these models as work for a pool."""
    dead = Outcome(reason="the process that computed it died, perhaps for want of memory")
    return PooledWork(
        do=partial(_outcome, tuple(networks), project_version()), key=lambda task: task.key, dead=lambda _task: dead
    )


def _outcome(networks: Sequence[Network], version: str, task: Task) -> Outcome:
    try:
        with collector_paused():
            works = tuple(_work(network, version, task) for network in networks)
            # A paused collector keeps cycles of what is dead by now: 15 MB for a point of YOLOv8n. All are in the
            # youngest generation until the end of the pause; a visit of the whole heap takes up to 0.4 seconds.
            gc.collect(0)
        return Outcome(works)
    except DiskError:
        raise
    except IntloomError as error:
        return Outcome(reason=str(error))
    except Exception as error:  # noqa: BLE001  # a fault of the compiler at one point must not end the others
        return Outcome(reason=f"internal error: {type(error).__name__}: {error}; please report it")


def _work(network: Network, version: str, task: Task) -> Work:
    options = fold_options(task.params)
    key = hashlib.sha256(f"{version} {network.source} {options} {task.key}".encode()).hexdigest()[:32]

    def make() -> str:
        try:
            programs = [compile_graph(graph, task.params, memory=task.memory) for graph in network.graphs[options]]
        except IntloomError as error:
            if isinstance(error, DiskError):
                raise
            return json.dumps({"reason": str(error)})
        return json.dumps(work_of(programs).to_dict())

    values = json.loads(cached_text(Kind.FORECAST, key, "work.json", make, detail=network.name))
    if "reason" in values:
        raise _Refused(f"{network.name}: {values['reason']}")
    return Work.from_dict(values)


class _Refused(IntloomError):
    """A model does not compile for a configuration."""


def memory_of(params: HardwareParams, mhz: float, bandwidth: float | None, latency: int) -> MemoryTiming:
    """The memory in beats of these parameters; `bandwidth` is in MB/s, None is a beat per cycle.

    A beat takes the time of the whole port, also if it carries less. The port has one per cycle in each direction.
    """
    beats = 1.0 if bandwidth is None else min(bandwidth / (mhz * params.port_bytes), 2.0)
    return MemoryTiming(read_latency=latency, bandwidth=beats)
