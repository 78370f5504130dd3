"""The suites: lists of cases, each a few lines of numbers."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from intloom.common.errors import UsageError
from intloom.hw.spec.params import PRESETS, HardwareParams, preset
from intloom.sim.random_programs.hardware import RANDOM_SETS, hardware_of
from intloom.sim.regress.case import PROGRAM, Argument, Case
from intloom.sim.regress.faults import FAULTS

_NANO = preset("nano")
_CHECKED = _NANO.replace(constant_check=True)
_OVER_CHANNELS = ("softmax", "norm")
_SOFTMAX = preset("small").replace(vector_lanes=2, vector_softmax=True, vector_norm=True, weight_sums=True)
_DEPTHWISE = preset("small").replace(vector_depthwise=True, vector_lanes=4)
_SIZE = {"height": 7, "width": 9}
_STRESS_SEEDS = 40
_RANDOM_PROGRAMS = 1000
_SOAK = range(100_000, 105_350)
"""Seeds of half an hour in one process: 2,625 programs took 884 s."""
_SOAK_FAULTS = ("", "changed-bit", "", "fetch-error", "", "read-error", "write-error")
"""Their number has no common factor with that of the hardware and that of the stalls."""
_STALLS = (0, 50, 0, 300, 700)
"""Chances of a pause, in thousandths. Their number and that of the hardware have no common factor."""
_STRESS_LEAST = {"weight_kib": 8, "acc_bits": 24, "mantissa_bits": 24}
"""Parameters that suffice for every random graph: its weights, its sums, and the compiler's scales, which have 24 bits.

The golden model has sums of 32 bits.
"""
_NETWORKS = (
    *(("tiny", 16), ("c2f", 32), ("sppf", 32), ("residual", 32), ("mini_yolo", 64)),
    *(("yolov8n-cls", 64), ("yolov8n-pose", 64), ("yolov8n-seg", 64), ("yolov8s", 64), ("yolov8m", 64)),
    *(("resnet18", 64), ("mobilenet_v2", 64)),
    *(("yolov8n", 160), ("yolov8n", 320), ("yolov8n", 416), ("yolov8n", 640)),
)
"""Every network of the zoo at a small size, and YOLOv8n as it is used; the long ones last."""


def _case(suite: str, name: str, hardware: HardwareParams, **rest: Any) -> Case:
    return Case(suite=suite, name=name, hardware=hardware.to_toml(), **rest)


def _named(suite: str, graph: str, seed: int, hardware: HardwareParams, arguments: dict[str, Argument]) -> Case:
    text = "-".join(f"{key}{value}" for key, value in arguments.items())
    return _case(suite, f"{graph}-{text}", hardware, graph=graph, seed=seed, arguments=arguments)


def smoke() -> list[Case]:
    """One case of each operation that matters, in about a minute."""
    size: dict[str, Argument] = dict(_SIZE)
    recipes: list[tuple[str, dict[str, Argument]]] = [
        ("conv", {"inputs": 6, "outputs": 10, "kernel": 3, "stride": 1, "pad": 1}),
        ("residual", {"channels": 8}),
        ("maxpool", {"channels": 5, "kernel": 3, "stride": 2, "pad": 1}),
        ("concat", {"first": 8, "second": 4}),
        ("resize", {"channels": 6, "factor": 2}),
    ]
    return [_named("smoke", g, n, _NANO, {**size, **a}) for n, (g, a) in enumerate(recipes)]


def ops() -> list[Case]:
    """Every operation with every kernel, stride and padding that it takes, at odd sizes."""
    cases: list[tuple[str, dict[str, Argument]]] = []
    for kernel, stride in itertools.product((1, 2, 3, 5, 7), (1, 2, 3)):
        pads = sorted({0, kernel // 2, kernel - 1})
        cases += [("conv", {"inputs": 5, "outputs": 7, "kernel": kernel, "stride": stride, "pad": p}) for p in pads]
    for kernel, stride in itertools.product((3, 5), (1, 2)):
        cases.append(("grouped", {"inputs": 9, "outputs": 9, "kernel": kernel, "stride": stride, "group": 9}))
        cases.append(("grouped", {"inputs": 8, "outputs": 12, "kernel": kernel, "stride": stride, "group": 2}))
    for op, kernel, stride in itertools.product(("maxpool", "avgpool"), (2, 3, 5), (1, 2)):
        cases += [(op, {"channels": 6, "kernel": kernel, "stride": stride, "pad": p}) for p in (0, kernel // 2)]
    cases += [
        ("transposed", {"inputs": 5, "outputs": 6, "kernel": k, "stride": s})
        for k, s in ((2, 2), (3, 2), (4, 2), (3, 1))
    ]
    cases += [(op, {"channels": c}) for op in ("add", "mul", "table", "residual") for c in (1, 4, 9)]
    cases += [("resize", {"channels": 5, "factor": f}) for f in (2, 3)]
    cases += [("concat", {"first": a, "second": b}) for a, b in ((4, 4), (3, 6), (1, 9))]
    cases += [("slice", {"channels": 12, "start": a, "stop": b}) for a, b in ((0, 4), (4, 12), (3, 7))]
    cases.append(("zero_points", {"inputs": 5, "outputs": 6}))
    cases += [("matmul", {"channels": c, "columns": n}) for c, n in ((4, 1), (8, 6), (12, 16))]
    cases.append(("transposed_constant", {"channels": 6}))
    named = [_named("ops", g, n, _NANO, {**_SIZE, **a}) for n, (g, a) in enumerate(cases)]
    count = len(named)
    named += [
        _named("ops", op, count + c, _SOFTMAX, {**_SIZE, "channels": c}) for op in _OVER_CHANNELS for c in (1, 8, 21)
    ]
    return named + [_depthwise_case(len(named) + s, s, c) for s, c in itertools.product((1, 2), (8, 21))]


def _depthwise_case(seed: int, stride: int, channels: int) -> Case:
    """A depthwise convolution on hardware whose vector unit computes them."""
    shape: dict[str, Argument] = {"inputs": channels, "outputs": channels, "kernel": 3, "stride": stride}
    return _named("ops", "grouped", seed, _DEPTHWISE, {**_SIZE, **shape, "group": channels})


def networks() -> list[Case]:
    """Whole networks on preset base."""
    base = preset("base")
    return [
        _case("networks", f"{name}-{size}", base, graph="network", arguments={"name": name, "size": size})
        for name, size in _NETWORKS
    ]


def stress() -> list[Case]:
    """Random graphs with random stalls on random hardware; the seeds are in the names."""
    cases = []
    for seed in range(_STRESS_SEEDS):
        hardware = stress_hardware(seed)
        stalls = int(np.random.default_rng(seed).choice([0, 50, 300, 700]))
        arguments: dict[str, Argument] = {"nodes": 2 + seed % 4}
        cases.append(
            _case(
                "stress", f"seed-{seed}", hardware, graph="chain", seed=seed, arguments=arguments, stall_permille=stalls
            )
        )
    return cases


def stress_hardware(seed: int) -> HardwareParams:
    """One of the random sets of parameters of the random programs, large enough for every random graph."""
    hardware = hardware_of(len(PRESETS) + seed % RANDOM_SETS)
    return hardware.replace(**{name: max(getattr(hardware, name), least) for name, least in _STRESS_LEAST.items()})


def faults() -> list[Case]:
    """Every fault ends in its own error."""
    arguments: dict[str, Argument] = {"inputs": 8, "outputs": 8, **_SIZE, "kernel": 3, "stride": 1, "pad": 1}
    return [_case("faults", name, _CHECKED, graph="conv", arguments=arguments, fault=name) for name in FAULTS]


def _program(suite: str, seed: int, **rest: Any) -> Case:
    stalls = _STALLS[seed % len(_STALLS)]
    return _case(suite, f"seed-{seed}", hardware_of(seed), graph=PROGRAM, seed=seed, stall_permille=stalls, **rest)


def random_programs(seeds: Iterable[int] = range(_RANDOM_PROGRAMS)) -> list[Case]:
    """Random programs on all presets and on random hardware, some with random stalls; the seed is the case's name."""
    return [_program("random", seed) for seed in seeds]


def soak(seeds: Iterable[int] = _SOAK) -> list[Case]:
    """As `random_programs`, of which some have a fault and must end in its error."""
    return [_program("soak", seed, fault=_SOAK_FAULTS[seed % len(_SOAK_FAULTS)]) for seed in seeds]


SUITES: dict[str, Callable[[], list[Case]]] = {
    "smoke": smoke,
    "ops": ops,
    "networks": networks,
    "stress": stress,
    "faults": faults,
    "random": random_programs,
    "soak": soak,
}
SEEDED: dict[str, Callable[[Iterable[int]], list[Case]]] = {"random": random_programs, "soak": soak}
"""Suites of which other seeds can be run."""


GROUPS: dict[str, tuple[str, ...]] = {
    "nightly": ("smoke", "ops", "stress", "faults", "random", "soak"),
    "all": tuple(SUITES),
}
"""Suites that run together; `nightly` is what `make nightly` runs."""


def suite(name: str) -> list[Case]:
    """The cases of a suite, or of a group of suites."""
    if name in GROUPS:
        return [case for part in GROUPS[name] for case in SUITES[part]()]
    if name not in SUITES:
        raise UsageError(f"suite must be one of {', '.join((*SUITES, *GROUPS))}, not {name!r}")
    return SUITES[name]()
