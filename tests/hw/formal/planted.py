"""Components with a planted fault: the class as its source file has it, with a few characters changed."""

from __future__ import annotations
import __future__

import inspect
import sys
from collections.abc import Callable, Iterable
from textwrap import dedent
from types import FrameType
from typing import Any, TypeVar

from amaranth.lib import wiring

from tests.support.nightly import with_nightly

_FLAGS = __future__.annotations.compiler_flag
"""Annotations stay text, as in the source files."""
_Component = TypeVar("_Component", bound=wiring.Component)
_Result = TypeVar("_Result")


def planted(component: type[_Component], *changes: tuple[str, str]) -> type[_Component]:
    """The component with each text of `changes` replaced by the other; each must occur exactly once.

    A subclass, as benches use to state what registers hold, gets a planted base class with `rebased`.
    """
    source = dedent(inspect.getsource(component))
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} must occur once in {component.__name__}, not {source.count(old)} times"
        source = source.replace(old, new)
    names = dict(vars(sys.modules[component.__module__]))
    exec(compile(source, f"planted {component.__name__}", "exec", dont_inherit=True, flags=_FLAGS), names)
    faulty: type[_Component] = names[component.__name__]
    return faulty


def each_night(faults: Iterable[object]) -> list[Any]:
    """Names of planted faults: `make test` plants the first one, which shows that the proof can fail."""
    first, *others = faults
    return with_nightly((first, *others), others)


def rebased(component: type[_Component], base: type[wiring.Component]) -> type[_Component]:
    """`component` with the planted class `base` in place of the class of that name that it derives from."""
    assert [old.__name__ for old in component.__bases__] == [base.__name__]
    source = dedent(inspect.getsource(component))
    names = {**vars(sys.modules[component.__module__]), base.__name__: base}
    exec(compile(source, f"rebased {component.__name__}", "exec", dont_inherit=True, flags=_FLAGS), names)
    result: type[_Component] = names[component.__name__]
    return result


def with_locals(method: Callable[..., _Result], *arguments: object) -> tuple[_Result, dict[str, dict[str, Any]]]:
    """What a component's method returns, and the local variables of each of its methods that ran, by their name.

    A proof by induction has to name registers that no attribute gives access to.
    """
    component, found, before = method.__self__, {}, sys.getprofile()  # type: ignore[attr-defined]  # a bound method

    def collect(frame: FrameType, event: str, _: object) -> None:
        if event == "return" and frame.f_locals.get("self") is component:
            found[frame.f_code.co_name] = dict(frame.f_locals)

    sys.setprofile(collect)
    try:
        return method(*arguments), found
    finally:
        sys.setprofile(before)
