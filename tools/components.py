"""The components of the RTL, found in the packages; the mutation tests derive from this list."""

import importlib
import inspect
import pkgutil
from typing import Any

from amaranth.lib import wiring

import intloom.hw

_PREFIX = "intloom.hw."


def components() -> list[type[Any]]:
    """Every component in `hw`, sorted by its name."""
    classes = set()
    for module in pkgutil.walk_packages(intloom.hw.__path__, _PREFIX):
        if not module.name.endswith("__main__"):
            members = vars(importlib.import_module(module.name)).values()
            classes |= {c for c in members if inspect.isclass(c) and issubclass(c, wiring.Component)}
    return sorted((c for c in classes if c.__module__.startswith(_PREFIX)), key=name_of)


def name_of(component: type[Any]) -> str:
    """Module, without the package, and class: `dma.load:LoadUnit`."""
    return f"{component.__module__.removeprefix(_PREFIX)}:{component.__name__}"
