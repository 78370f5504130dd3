"""TFLite importer: an int8 flatbuffer becomes the same `Model` that an ONNX file becomes."""
