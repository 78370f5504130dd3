"""Object detection on an image file, with the boxes drawn into a copy.

    python examples/detect.py yolov8n.loom street.jpg -o boxes.png --backend rtl

The network's integer part runs on the chosen backend (golden, isa or rtl); with --backend onnxruntime the whole model
runs there instead. Box decoding and non-maximum suppression run on the host. All backends give the same boxes.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import intloom
from intloom.common.errors import IntloomError
from intloom.compiler.reference import open_session
from intloom.images import synthetic_image
from intloom.pictures import Picture, draw_boxes, letterbox, read_picture

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Detections:
    """Boxes as corners x1, y1, x2, y2 in pixels of the image, in descending order of score."""

    boxes: Floats
    scores: Floats
    classes: NDArray[np.int64]


def decode(output: Floats, confidence: float, overlap: float, most: int) -> Detections:
    """Detections in pixels of the network input, from the output `[1, 4 + classes, anchors]`."""
    rows = output[0].T
    classes = rows[:, 4:].argmax(axis=1)
    scores = rows[np.arange(len(rows)), 4 + classes]
    likely = np.flatnonzero(scores >= confidence)
    likely = likely[np.argsort(-scores[likely], kind="stable")]
    center, size = rows[likely, :2], rows[likely, 2:4]
    boxes = np.concatenate([center - size / 2, center + size / 2], axis=1)
    kept = suppress(boxes, classes[likely], overlap)[:most]
    return Detections(boxes[kept], scores[likely][kept], classes[likely][kept])


def suppress(boxes: Floats, classes: NDArray[np.int64], overlap: float) -> NDArray[np.int64]:
    """Non-maximum suppression: indices of boxes whose intersection over union with better ones is at most `overlap`."""
    areas = (boxes[:, 2:] - boxes[:, :2]).clip(0).prod(axis=1)
    kept: list[int] = []
    for i in range(len(boxes)):
        rivals = [k for k in kept if classes[k] == classes[i]]
        low = np.maximum(boxes[rivals, :2], boxes[i, :2])
        high = np.minimum(boxes[rivals, 2:], boxes[i, 2:])
        shared = (high - low).clip(0).prod(axis=1)
        if not np.any(shared > overlap * (areas[rivals] + areas[i] - shared)):
            kept.append(i)
    return np.array(kept, np.int64)


def infer(program: Path, backend: str, image: Floats) -> Floats:
    """The network's first output for one image."""
    if backend == "onnxruntime":
        model = program.with_name(f"{program.name}.onnx")
        session = open_session(model.read_bytes())
        whole: Floats = session.run(None, {session.get_inputs()[0].name: image})[0]
        return whole
    npu = intloom.Session(program, backend=backend)
    (name,) = npu.inputs
    result: Floats = npu.run(None, {name: image})[0].astype(np.float32)
    return result


def input_size(program: Path) -> tuple[int, int]:
    """Height and width of the network input."""
    (shape,) = intloom.Session(program, backend="golden").inputs.values()
    return shape[2], shape[3]


def open_picture(path: Path | None, height: int, width: int) -> Picture:
    """The image in a file, or a synthetic one."""
    if path is not None:
        return read_picture(path, height, width)
    from PIL import Image

    pixels = (synthetic_image(2 * height, 3 * width, seed=1).transpose(1, 2, 0) * 255).astype(np.uint8)
    return letterbox(Image.fromarray(pixels), height, width)


def main(arguments: list[str] | None = None) -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="a .loom file of a YOLOv8 detector")
    parser.add_argument("picture", type=Path, nargs="?", help="PNG or JPEG; a synthetic image by default")
    parser.add_argument("-o", "--output", type=Path, default=Path("boxes.png"))
    parser.add_argument("--backend", default="rtl", choices=["golden", "isa", "rtl", "onnxruntime"])
    parser.add_argument("--confidence", type=float, default=0.25)
    parser.add_argument("--overlap", type=float, default=0.5)
    parser.add_argument("--most", type=int, default=20, help="maximum number of boxes")
    chosen = parser.parse_args(arguments)
    try:
        picture = open_picture(chosen.picture, *input_size(chosen.program))
        found = decode(
            infer(chosen.program, chosen.backend, picture.tensor), chosen.confidence, chosen.overlap, chosen.most
        )
        boxes = picture.to_original(found.boxes)
        labels = [f"{c} {s:.2f}" for c, s in zip(found.classes, found.scores, strict=True)]
        draw_boxes(picture.original, boxes, labels, chosen.output)
    except IntloomError as error:
        print(f"detect: {error}", file=sys.stderr)
        return int(error.exit_code)
    for box, label in zip(boxes, labels, strict=True):
        print(f"class {label}  " + " ".join(f"{v:7.1f}" for v in box))
    print(f"{len(boxes)} boxes, drawn in {chosen.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
