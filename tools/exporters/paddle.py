"""Paddle's own exporter. Packages: paddlepaddle, paddle2onnx, onnx, setuptools, packaging."""

from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import paddle
from paddle import nn

from tools.exporters import Exported


class Classifier(nn.Layer):
    """A residual block, a depthwise convolution and a classifier tail."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(3, 16, 3, 2, 1), nn.BatchNorm2D(16), nn.ReLU())
        self.block = nn.Sequential(nn.Conv2D(16, 16, 3, padding=1), nn.BatchNorm2D(16), nn.Hardswish())
        self.tail = nn.Sequential(nn.Conv2D(16, 16, 3, padding=1, groups=16), nn.ReLU6(), nn.Conv2D(16, 32, 1))
        self.pool, self.average, self.linear = nn.MaxPool2D(2), nn.AdaptiveAvgPool2D(1), nn.Linear(32, 10)

    def forward(self, image: paddle.Tensor) -> paddle.Tensor:
        """Compute the result."""
        x = self.stem(image)
        x = self.tail(self.pool(self.block(x) + x))
        return nn.functional.softmax(self.linear(self.average(nn.functional.relu(x)).flatten(1)))


def _export() -> Exported:
    paddle.seed(7)
    model = Classifier()
    model.eval()
    with TemporaryDirectory() as folder:
        # The batch is open, as in the files that PaddleOCR publishes.
        shape = paddle.static.InputSpec([None, 3, 32, 32], "float32", "images")
        paddle.onnx.export(model, str(Path(folder, "model")), input_spec=[shape], opset_version=14)
        return {"classifier.paddle2onnx": onnx.load(Path(folder, "model.onnx"))}


EXPORTERS = ((("paddlepaddle", "paddle2onnx"), _export),)
