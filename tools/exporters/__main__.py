"""Writes the files of a group of exporters, and their lines in the index."""

import argparse
import json
from importlib import import_module

import onnx

from tools.exporters import FOLDER, INDEX, MAX_BYTES, Exported, versions


def _without_sources(model: onnx.ModelProto) -> bytes:
    """The file without names of Python files and lines, which differ between machines."""
    del model.metadata_props[:]
    graphs = [model.graph, *model.functions]
    for part in [*graphs, *(n for g in graphs for n in g.node), *model.graph.initializer, *model.graph.input]:
        part.ClearField("doc_string")
        del part.metadata_props[:]
    for value in [*model.graph.output, *model.graph.value_info]:
        del value.metadata_props[:]
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def write(models: Exported, tools: str) -> None:
    """Write files and their lines in the index.

    Raises
    ------
    ValueError
        A file is too large to be kept.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    index = json.loads(INDEX.read_text(encoding="utf-8")) if INDEX.exists() else {}
    for name, model in models.items():
        data = _without_sources(model)
        if len(data) > MAX_BYTES:
            raise ValueError(f"{name} has {len(data)} bytes; at most {MAX_BYTES} are kept")
        (FOLDER / f"{name}.onnx").write_bytes(data)
        index[name] = tools
        print(f"{name}: {len(data)} bytes")
    INDEX.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", help="module of this folder: pytorch first, since others read its files")
    module = import_module(f"tools.exporters.{parser.parse_args().group}")
    for packages, export in module.EXPORTERS:
        write(export(), versions(*packages))


if __name__ == "__main__":
    main()
