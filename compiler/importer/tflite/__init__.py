"""TFLite importer: an int8 flatbuffer becomes the same `Model` that an ONNX file becomes."""

from intloom.compiler.importer.tflite.convert import load_tflite
from intloom.compiler.importer.tflite.file import is_tflite

__all__ = ["is_tflite", "load_tflite"]
