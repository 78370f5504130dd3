"""The execution provider: takes nodes of a session's graph, compiles them, and runs them."""

import ctypes
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from importlib.metadata import version
from typing import Any

import numpy as np

from intloom.common.errors import IntloomError, UnsupportedError, UsageError
from intloom.compiler.refusals import Refusal
from intloom.execution_provider import abi
from intloom.execution_provider.graph import GraphReader, array_of
from intloom.execution_provider.library import Library
from intloom.execution_provider.partition import parts_of
from intloom.session import Session

NAME = "IntloomExecutionProvider"
_VENDOR = "Intloom"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How sessions run the nodes that the provider takes; see `intloom.register_execution_provider`."""

    backend: str | None = None
    preset: str | None = None
    config: str | None = None


@dataclass(frozen=True, eq=False)
class _Part:
    """A compiled part of a graph, with the functions that onnxruntime calls."""

    session: Session
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    info: abi.ComputeInfo = field(default_factory=abi.ComputeInfo)


@dataclass(frozen=True, eq=False)
class _Ep:
    """The provider of one session. onnxruntime holds pointers into it until it releases the session."""

    settings: Settings
    parts: list[_Part] = field(default_factory=list)
    functions: abi.Ep = field(default_factory=abi.Ep)


class Provider:
    """The functions that onnxruntime calls; one object for the process."""

    def __init__(self, library: Library, settings: Settings) -> None:
        self.settings = settings
        self._library = library
        self._api: abi.Api
        self._texts = {t: ctypes.create_string_buffer(t.encode()) for t in (NAME, _VENDOR, version("intloom"))}
        self._eps: dict[int, _Ep] = {}
        self._nothing = abi.CreateNothing(_create_nothing)
        self._state = abi.CreateState(_create_no_state)
        self._factory = self._new_factory()
        self._entries = abi.CreateFactories(self._create_factories), abi.Release(self._release_ep)
        library.set(*self._entries)

    def _text(self, text: str) -> Any:
        address = ctypes.addressof(self._texts[text])
        return abi.GetText(lambda _this: address)

    def _status(self, function: Callable[..., None]) -> Callable[..., int | None]:
        """`function` with a status as its result, because exceptions cannot pass through C."""

        @wraps(function)
        def call(*arguments: Any) -> int | None:
            try:
                function(*arguments)
            except Exception as error:  # noqa: BLE001  # the status of any exception
                made: int = self._api.CreateStatus(abi.FAIL, f"{type(error).__name__}: {error}".encode())
                return made
            return abi.OK

        return call

    def _new_factory(self) -> abi.Factory:
        return abi.Factory(
            version=abi.API_VERSION,
            get_name=self._text(NAME),
            get_vendor=self._text(_VENDOR),
            get_devices=abi.GetDevices(self._status(self._get_devices)),
            create_ep=abi.CreateEp(self._status(self._create_ep)),
            release_ep=self._library.address("intloom_release_ep"),
            get_vendor_id=abi.GetNumber(lambda _this: 0),
            get_version=self._text(version("intloom")),
            create_data_transfer=self._nothing,
            is_stream_aware=abi.GetFlag(lambda _this: False),
        )

    def _create_factories(
        self, _name: bytes, base: int, _logger: int, factories: Any, _limit: int, count: Any
    ) -> int | None:
        self._api = abi.Api(base)
        factories[0] = ctypes.addressof(self._factory)
        count[0] = 1
        return abi.OK

    def _get_devices(self, this: int, devices: Any, number: int, made: Any, _limit: int, count: Any) -> None:
        """The accelerator is simulated, so its device is the processor."""
        count[0] = 0
        for i in range(number):
            if self._api.HardwareDevice_Type(devices[i]) == abi.CPU_DEVICE:
                made[0] = self._api.pointer(self._api.CreateEpDevice, this, devices[i], None, None)
                count[0] = 1
                return

    def _create_ep(
        self, _this: int, _devices: Any, _metadata: Any, _count: int, options: int, _logger: int, made: Any
    ) -> None:
        ep = _Ep(self._settings_of(options))
        ep.functions.version = abi.API_VERSION
        ep.functions.get_name = self._text(NAME)
        ep.functions.get_capability = abi.GetCapability(self._status(self._get_capability))
        ep.functions.compile = abi.Compile(
            self._status(lambda _this, graphs, _nodes, count, infos, _context: self._compile(ep, graphs, count, infos))
        )
        ep.functions.release_compute_infos = self._library.address("intloom_release_compute_infos")
        address = ctypes.addressof(ep.functions)
        self._eps[address] = ep
        made[0] = address

    def _settings_of(self, options: int) -> Settings:
        """The provider's options of a session, else those of the registration."""
        prefix = f"ep.{NAME.lower()}."
        entries = self._api.entries(options).items()
        given = {key.removeprefix(prefix): value for key, value in entries if key.startswith(prefix)}
        known = [f.name for f in fields(Settings)]
        if unknown := [name for name in given if name not in known]:
            raise UsageError(f"option of {NAME} must be one of {', '.join(known)}, not {unknown[0]!r}")
        hardware = {"preset": None, "config": None} if given.keys() & {"preset", "config"} else {}
        return replace(self.settings, **(hardware | given))

    def _release_ep(self, ep: int) -> None:
        self._eps.pop(ep, None)

    def _get_capability(self, _this: int, graph: int, support: int) -> None:
        reader = GraphReader(self._api, graph)
        if reader.is_nested():
            return
        try:
            parts = _free_parts(reader)
        except IntloomError as error:
            _log.warning("no node of the session runs on %s: %s", NAME, error)
            return
        for part in parts:
            nodes = (ctypes.c_void_p * len(part))(*(reader.nodes[i] for i in part))
            options = abi.FusionOptions(version=abi.API_VERSION, drop_constant_initializers=True)
            self._api.AddNodesToFuse(support, nodes, len(part), ctypes.byref(options))

    def _compile(self, ep: _Ep, graphs: Any, count: int, infos: Any) -> None:
        chosen = ep.settings
        for i in range(count):
            reader = GraphReader(self._api, graphs[i])
            session = Session(reader.model(), backend=chosen.backend, preset=chosen.preset, config=chosen.config)
            part = _Part(session, tuple(reader.inputs()), tuple(reader.outputs()))
            part.info.version = abi.API_VERSION
            part.info.create_state = self._state
            part.info.compute = abi.Compute(self._compute_of(part))
            part.info.release_state = self._library.address("intloom_release_state")
            ep.parts.append(part)
            infos[i] = ctypes.addressof(part.info)

    def _compute_of(self, part: _Part) -> Callable[..., int | None]:
        return self._status(lambda _this, _state, context: self._compute(part, context))

    def _compute(self, part: _Part, context: int) -> None:
        api = self._api
        feeds = {
            name: array_of(api, api.pointer(api.KernelContext_GetInput, context, i))
            for i, name in enumerate(part.inputs)
        }
        for i, values in enumerate(part.session.run(part.outputs, feeds)):
            shape = (ctypes.c_int64 * values.ndim)(*values.shape)
            target = api.pointer(api.KernelContext_GetOutput, context, i, shape, values.ndim)
            np.copyto(array_of(api, target), values)


def _free_parts(reader: GraphReader) -> list[list[int]]:
    """The parts that the provider can take.

    Raises
    ------
    UsageError, ModelError, UnsupportedError
        There is none; the message says why.
    """
    if reader.has_control_flow():
        raise UnsupportedError(
            "the model has control flow; export it without If, Loop and Scan", Refusal.CONTROL_FLOW.number
        )
    parts = parts_of(reader.model())
    if not parts:
        message = "the compiler finds no quantized node; `intloom inspect MODEL` gives the reasons"
        raise UnsupportedError(message, Refusal.NOT_QUANTIZED.number)
    owners = {part[0]: {reader.provider(i) for i in part} - {""} for part in parts}
    free = [part for part in parts if not owners[part[0]]]
    if not free:
        taken = ", ".join(sorted(set().union(*owners.values())))
        raise UsageError(f"{taken} comes earlier in `providers` and has taken them: name {NAME} first")
    return free


def _create_nothing(_this: int, made: Any) -> int | None:
    made[0] = None
    return abi.OK


def _create_no_state(_this: int, _context: int, made: Any) -> int | None:
    made[0] = None
    return abi.OK
