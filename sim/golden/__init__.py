"""The golden model: the meaning of the integer graph, one operation per file. Every file is imported and registers."""

from intloom.common.discovery import import_submodules
from intloom.sim.golden.run import run_graph

__all__ = ["run_graph"]

import_submodules(__name__)
