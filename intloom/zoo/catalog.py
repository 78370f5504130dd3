"""List of the zoo's networks, and the function that builds them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import onnx

from intloom.common.errors import UsageError
from intloom.zoo import (
    bert,
    classifiers,
    mobile_classifiers,
    mobilevit,
    ocr_detector,
    ocr_recognizer,
    shufflenet,
    small_networks,
    ssd,
    vit,
    yolo11,
    yolov8,
    yolox,
)
from intloom.zoo.builder import Builder
from intloom.zoo.weight_normalization import BATCH, normalize_weights

_LARGEST = 2048
_MEASURED_SIZE = 128
"""Image size for the measurement of weight statistics: the smallest feature map has more than one pixel."""


@dataclass(frozen=True)
class Entry:
    """A network of the zoo."""

    name: str
    doc: str
    default_size: int
    multiple: int
    """The image size must be a multiple of this."""
    make: Callable[[Builder, int], None]
    measured_size: int = _MEASURED_SIZE


def _yolo(name: str, task: str, doc: str) -> Entry:
    family, size = name[:-1], name[-1]
    make = {"yolov8": yolov8.build, "yolo11": yolo11.yolo11, "yolo26": yolo11.yolo26}[family]
    suffix = "" if task == "detect" else f"-{task}"
    return Entry(f"{name}{suffix}", doc, 224 if task == "cls" else 640, 32, partial(make, size=size, task=task))


def _classifier(name: str, title: str, make: Callable[[Builder, int], None]) -> Entry:
    return Entry(name, f"{title}, classification", 224, 32, make)


_RECOGNIZER = f"text recognition with attention, as in PP-OCRv3; {ocr_recognizer.HEIGHT} rows, size is the width"
_ENTRIES = (
    _yolo("yolov8n", "detect", "YOLOv8 nano, detection"),
    _yolo("yolov8s", "detect", "YOLOv8 small, detection"),
    _yolo("yolov8m", "detect", "YOLOv8 medium, detection"),
    _yolo("yolov8n", "seg", "YOLOv8 nano, instance segmentation"),
    _yolo("yolov8n", "pose", "YOLOv8 nano, human pose"),
    _yolo("yolov8n", "cls", "YOLOv8 nano, classification"),
    _yolo("yolo11n", "detect", "YOLO11 nano, detection"),
    _yolo("yolo11s", "detect", "YOLO11 small, detection"),
    _yolo("yolo11n", "seg", "YOLO11 nano, instance segmentation"),
    _yolo("yolo11n", "pose", "YOLO11 nano, human pose"),
    _yolo("yolo26n", "detect", "YOLO26 nano, detection without suppression"),
    _yolo("yolo26n", "seg", "YOLO26 nano, instance segmentation without suppression"),
    _yolo("yolo26n", "pose", "YOLO26 nano, human pose without suppression"),
    Entry("yolox_nano", "YOLOX nano, detection", 416, 32, yolox.yolox_nano),
    Entry("ssd_mobilenet_v1", "SSD with MobileNetV1, detection", 300, 20, ssd.ssd_mobilenet_v1, 300),
    Entry("ocr_detector", "text detection as in PP-OCRv3", 640, 32, ocr_detector.ocr_detector),
    Entry("ocr_recognizer", _RECOGNIZER, 320, 32, ocr_recognizer.ocr_recognizer, 320),
    _classifier("resnet18", "ResNet-18", classifiers.resnet18),
    _classifier("mobilenet_v2", "MobileNetV2", mobile_classifiers.mobilenet_v2),
    _classifier("mobilenet_v3_large", "MobileNetV3 large", mobile_classifiers.mobilenet_v3_large),
    _classifier("mobilenet_v4_conv_small", "MobileNetV4 conv small", mobile_classifiers.mobilenet_v4_conv_small),
    _classifier("efficientnet_lite0", "EfficientNet-lite0", mobile_classifiers.efficientnet_lite0),
    _classifier("shufflenet_v2", "ShuffleNetV2 1.0x", shufflenet.shufflenet_v2),
    _classifier("vit_tiny", "vision transformer, 12 blocks", vit.vit),
    _classifier("deit_tiny", "vision transformer with a class token, 12 blocks", partial(vit.vit, class_token=True)),
    Entry("mobilevit_xxs", "MobileViT-XXS, classification", 256, 64, mobilevit.mobilevit_xxs),
    Entry(
        "minilm_l6", "sentence vectors, a BERT encoder of 6 layers; size is the number of tokens", 128, 1, bert.minilm
    ),
    Entry("tiny", "one convolution with SiLU", 16, 1, small_networks.tiny),
    Entry("c2psa", "the attention block of YOLO11 nano, on the features of an image", 640, 32, small_networks.c2psa),
    Entry("c2f", "a stem and one C2f block", 32, 2, small_networks.c2f),
    Entry("sppf", "a stem and one SPPF block", 32, 2, small_networks.sppf),
    Entry("residual", "a stem and two residual blocks", 32, 4, small_networks.residual),
    Entry("mini_yolo", "a small detector with the YOLOv8 head", 64, 16, small_networks.mini_yolo),
)
ZOO: Mapping[str, Entry] = {e.name: e for e in _ENTRIES}


def entry(name: str) -> Entry:
    """The zoo entry called `name`.

    Raises
    ------
    UsageError
        The name is unknown; the message lists all names.
    """
    if name not in ZOO:
        raise UsageError(f"zoo model must be one of {', '.join(ZOO)}, not {name!r}")
    return ZOO[name]


def build(name: str, imgsz: int | None = None, seed: int = 0) -> onnx.ModelProto:
    """The float ONNX model (opset 17) of a zoo network.

    Parameters
    ----------
    name
        A key of `ZOO`.
    imgsz
        Height and width of the input image; for a line of text, its width. None selects the entry's default.
    seed
        Seed of the weights; the same seed gives the same model.

    Raises
    ------
    UsageError
        The name is unknown, or the size is not a positive multiple of the entry's `multiple`.
    """
    chosen = entry(name)
    size = chosen.default_size if imgsz is None else imgsz
    if not 0 < size <= _LARGEST or size % chosen.multiple:
        raise UsageError(f"imgsz of {name} must be a multiple of {chosen.multiple} up to {_LARGEST}, not {size}")
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed}")
    wanted, measured = Builder(name, seed), Builder(name, seed, batch=BATCH)
    chosen.make(wanted, size)
    chosen.make(measured, chosen.measured_size)
    normalize_weights(wanted, measured)
    return wanted.finish()
