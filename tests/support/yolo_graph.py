"""The topology of YOLOv8 detection as an integer graph with random weights, heads left as convolutions."""

from intloom.compiler.ir import IntGraph
from intloom.sim.regress.graphs import GraphMaker

_BOXES = 64
_CLASSES = 80


class _Yolo:
    """Channel counts of the n size; `tables` puts a table before each part of a concatenation, as real exports have."""

    def __init__(self, seed: int, *, tables: bool) -> None:
        self.maker = GraphMaker(seed)
        self.tables = tables

    def concat(self, *parts: str) -> str:
        if self.tables:
            parts = tuple(self.maker.apply_table(p) for p in parts)
        return self.maker.concat(*parts)

    def c2f(self, x: str, channels: int, repeats: int, *, shortcut: bool) -> str:
        m = self.maker
        half = channels // 2
        y = m.conv(x, channels)
        parts = [m.slice(y, 0, half), m.slice(y, half, channels)]
        for _ in range(repeats):
            z = m.conv(m.conv(parts[-1], half, 3), half, 3)
            parts.append(m.add(parts[-1], z) if shortcut else z)
        return m.conv(self.concat(*parts), channels)

    def sppf(self, x: str, channels: int) -> str:
        m = self.maker
        parts = [m.conv(x, channels // 2)]
        for _ in range(3):
            parts.append(m.max_pool(parts[-1], 5, pad=2))
        return m.conv(m.concat(*parts), channels)

    def head(self, x: str) -> tuple[str, str]:
        m = self.maker
        boxes = m.conv(m.conv(m.conv(x, _BOXES, 3), _BOXES, 3), _BOXES, table=False)
        classes = m.conv(m.conv(m.conv(x, _CLASSES, 3), _CLASSES, 3), _CLASSES, table=False)
        return boxes, classes

    def build(self, size: int) -> IntGraph:
        m = self.maker
        x = m.conv(m.conv(m.input(3, size, size), 16, 3, stride=2), 32, 3, stride=2)
        x = self.c2f(x, 32, 1, shortcut=True)
        p3 = self.c2f(m.conv(x, 64, 3, stride=2), 64, 2, shortcut=True)
        p4 = self.c2f(m.conv(p3, 128, 3, stride=2), 128, 2, shortcut=True)
        x = self.c2f(m.conv(p4, 256, 3, stride=2), 256, 1, shortcut=True)
        p5 = self.sppf(x, 256)
        n4 = self.c2f(self.concat(m.resize(p5), p4), 128, 1, shortcut=False)
        n3 = self.c2f(self.concat(m.resize(n4), p3), 64, 1, shortcut=False)
        o4 = self.c2f(self.concat(m.conv(n3, 64, 3, stride=2), n4), 128, 1, shortcut=False)
        o5 = self.c2f(self.concat(m.conv(o4, 128, 3, stride=2), p5), 256, 1, shortcut=False)
        outputs = [name for p in (n3, o4, o5) for name in self.head(p)]
        return m.graph(*outputs, name="yolov8n-like")


def yolo_graph(size: int, *, seed: int = 0, tables: bool = True) -> tuple[IntGraph, GraphMaker]:
    """YOLOv8n for pictures of `size` x `size`, and the maker for random inputs."""
    yolo = _Yolo(seed, tables=tables)
    return yolo.build(size), yolo.maker
