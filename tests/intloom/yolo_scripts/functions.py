"""YOLOv8 detection with onnxruntime, written as functions: letterbox, inference, non-maximum suppression.

python functions.py MODEL.onnx IMAGE
"""

import json
import sys

import numpy as np
import onnxruntime as ort
from PIL import Image

CONFIDENCE, OVERLAP = 0.001, 0.45


def letterbox(image, size):
    ratio = min(size[0] / image.height, size[1] / image.width)
    width, height = round(image.width * ratio), round(image.height * ratio)
    left, top = (size[1] - width) // 2, (size[0] - height) // 2
    canvas = Image.new("RGB", (size[1], size[0]), (114, 114, 114))
    canvas.paste(image.resize((width, height)), (left, top))
    return np.asarray(canvas), ratio, (left, top)


def overlaps(box, others):
    top_left = np.maximum(box[:2], others[:, :2])
    bottom_right = np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.clip(bottom_right - top_left, 0, None), axis=1)
    area = np.prod(box[2:] - box[:2])
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
    return shared / (area + areas - shared + 1e-9)


def suppress(boxes, scores):
    kept, order = [], scores.argsort(kind="stable")[::-1]
    while order.size:
        kept.append(order[0])
        order = order[1:][overlaps(boxes[order[0]], boxes[order[1:]]) < OVERLAP]
    return kept


def main(model, picture):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    _, _, height, width = entry.shape
    pixels, ratio, padding = letterbox(Image.open(picture).convert("RGB"), (height, width))
    tensor = pixels.transpose(2, 0, 1)[None].astype(np.float32) / 255.0
    output_names = [o.name for o in session.get_outputs()]
    rows = np.squeeze(session.run(output_names, {entry.name: tensor})[0]).T
    scores, classes = rows[:, 4:].max(axis=1), rows[:, 4:].argmax(axis=1)
    likely = scores > CONFIDENCE
    centers, sizes = rows[likely, :2], rows[likely, 2:4]
    boxes = np.concatenate([centers - sizes / 2, centers + sizes / 2], axis=1)
    boxes = (boxes - np.array([*padding, *padding])) / ratio
    for index in suppress(boxes, scores[likely])[:10]:
        box, score = boxes[index].round(3).tolist(), round(float(scores[likely][index]), 6)
        print(json.dumps({"class": int(classes[likely][index]), "score": score, "box": box}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
