"""YOLOv8 detection with onnxruntime, driven by the model's metadata, with threads that share a session.

python metadata.py MODEL.onnx IMAGE
"""

import ast
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image


def load(weights):
    providers = [("CPUExecutionProvider", {})]
    session = onnxruntime.InferenceSession(
        Path(weights).read_bytes(), sess_options=onnxruntime.SessionOptions(), providers=providers
    )
    metadata = session.get_modelmeta().custom_metadata_map
    return session, ast.literal_eval(metadata["names"]), int(metadata["stride"])


def main(weights, source):
    session, names, stride = load(weights)
    entry = session.get_inputs()[0]
    half = "float16" in entry.type
    batch, channels, height, width = entry.shape
    assert (batch, channels, height % stride, width % stride) == (1, 3, 0, 0)
    image = Image.open(source).convert("RGB").resize((width, height))
    frames = [image, image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)]

    def infer(frame):
        im = np.ascontiguousarray(np.asarray(frame).transpose(2, 0, 1)[None])
        im = im.astype(np.float16 if half else np.float32) / 255
        return session.run([], input_feed={entry.name: im}, run_options=None)

    with ThreadPoolExecutor(3) as pool:
        for number, outputs in enumerate(pool.map(infer, frames)):
            for declared, y in zip(session.get_outputs(), outputs, strict=True):
                assert list(y.shape) == declared.shape
                best = y[0, 4:].max(axis=1)
                print(number, declared.name, declared.type, names[int(best.argmax())], *np.round(best, 6))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
