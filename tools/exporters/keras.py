"""Keras by tf2onnx, and int8 TFLite by tf2onnx. Packages: tensorflow-cpu, tf2onnx, onnx."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from keras import layers

from tools.exporters import Exported

SHAPE = (32, 32, 3)


def _model() -> keras.Model:
    """The classifier, channels last."""
    keras.utils.set_random_seed(7)
    image = layers.Input(SHAPE, batch_size=1)
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3, 2, "same", use_bias=False)(image)))
    y = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = layers.ReLU()(layers.Add()([layers.Conv2D(16, 3, padding="same")(y), x]))
    x = layers.ReLU(6.0)(layers.DepthwiseConv2D(3, padding="same")(layers.MaxPooling2D()(x)))
    x = layers.Conv2D(32, 1, activation="relu")(x)
    return keras.Model(image, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def _samples() -> Iterator[list[np.ndarray]]:
    noise = np.random.default_rng(3)
    for _ in range(8):
        yield [noise.random((1, *SHAPE), np.float32)]


def _tflite(model: keras.Model) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = _samples
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    data: bytes = converter.convert()
    return data


def _export() -> Exported:
    model = _model()
    signature = (tf.TensorSpec((1, *SHAPE), tf.float32, name="images"),)
    function = tf.function(lambda images: model(images, training=False))
    plain, _ = tf2onnx.convert.from_function(function, input_signature=signature, opset=17)
    with TemporaryDirectory() as folder:
        file = Path(folder, "model.tflite")
        file.write_bytes(_tflite(model))
        tflite, _ = tf2onnx.convert.from_tflite(str(file), opset=17)
    return {"classifier.tf2onnx": plain, "classifier.tf2onnx-tflite": tflite}


EXPORTERS = ((("tensorflow-cpu", "tf2onnx"), _export),)
