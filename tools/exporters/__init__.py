"""Small seeded networks as real exporters write them, kept in tests/data/exporters.

`python -m tools.exporters GROUP` runs in an environment of its own, into which the packages of the group were installed
by pip: the module of the group states them. The project itself depends on none of them.
"""

from importlib.metadata import version
from pathlib import Path

import onnx

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "exporters"
INDEX = FOLDER / "index.json"
MAX_BYTES = 200_000

Exported = dict[str, onnx.ModelProto]
"""Models by name: the network and the exporter, `classifier.dynamo`."""


def versions(*packages: str) -> str:
    """Packages with their versions, as the index states them."""
    return ", ".join(f"{name} {version(name)}" for name in packages)
