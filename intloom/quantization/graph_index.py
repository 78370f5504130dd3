"""Constants of a graph, and which nodes make and read its values."""

from collections import defaultdict

import onnx


class GraphIndex:
    """Constants, makers and readers by the names of values, as they are when the index is made."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.constants = {i.name: i for i in graph.initializer}
        self.makers = {o: n for n in graph.node for o in n.output}
        self._readers = defaultdict[str, list[onnx.NodeProto]](list)
        for node in graph.node:
            for value in dict.fromkeys(node.input):
                self._readers[value].append(node)

    def readers(self, value: str) -> list[onnx.NodeProto]:
        """The nodes that read a value, in the order of the graph."""
        return self._readers.get(value, [])
