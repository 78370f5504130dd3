"""Import of all modules of a package, so that their decorators fill a registry."""

import pkgutil
from importlib import import_module


def import_submodules(package: str) -> None:
    """Import every module of a package, in alphabetical order; a package's `__init__` calls it with its own name."""
    path = import_module(package).__path__
    for module in sorted(pkgutil.iter_modules(path), key=lambda m: m.name):
        import_module(f"{package}.{module.name}")
