"""A convolutional classifier with SiLU, trained with numpy on generated pictures of shapes."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper

from tests.support.given_model import given_model

SIZE, SHAPES = 16, ("disk", "square", "cross", "ring", "bar")
_CHANNELS = ((8, 3), (16, 8))
_GRID = SIZE // 4


def pictures(seed, count):
    """Bright shapes on dark ground with noise, [count, 3, size, size], and their labels."""
    rng, labels = np.random.default_rng(seed), np.arange(count) % len(SHAPES)
    return np.stack([_picture(rng, label) for label in labels]), labels


def _picture(rng, label):
    y, x = np.mgrid[:SIZE, :SIZE] + 0.5
    radius = rng.uniform(5, 7)
    cy, cx = rng.uniform(radius, SIZE - radius, 2)
    dy, dx = np.abs(y - cy), np.abs(x - cx)
    far, most = np.hypot(dy, dx), np.maximum(dy, dx)
    inside = (
        far < radius,
        most < 0.85 * radius,
        ((dy < radius / 3) | (dx < radius / 3)) & (most < radius),
        (far < radius) & (far > 0.55 * radius),
        (dy < radius / 3) & (dx < radius),
    )[label]
    front, ground = rng.uniform(0.5, 1, (3, 1, 1)), rng.uniform(0, 0.4, (3, 1, 1))
    return np.clip(np.where(inside, front, ground) + rng.normal(0, 0.05, (3, SIZE, SIZE)), 0, 1).astype(np.float32)


def _columns(x):
    """The 3x3 windows at stride 2, [pictures, height, width, channels, 3, 3]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2].transpose(0, 2, 3, 1, 4, 5)


def _silu(z):
    gate = 1 / (1 + np.exp(-z))
    return z * gate, gate * (1 + z * (1 - gate))


def _gradients(parameters, x, labels):
    (w0, w1), (b0, b1), dense, bias = parameters[:2], parameters[2:4], parameters[4], parameters[5]
    kept = []
    for w, b in ((w0, b0), (w1, b1)):
        windows = _columns(x)
        shape = windows.shape[:3]
        windows = windows.reshape(np.prod(shape), -1)
        values, slope = _silu(windows @ w.reshape(len(w), -1).T + b)
        kept.append((windows, slope, shape))
        x = values.reshape(*shape, -1).transpose(0, 3, 1, 2)
    features = x.reshape(len(x), -1)
    scores = features @ dense.T + bias
    error = np.exp(scores - scores.max(axis=1, keepdims=True))
    error /= error.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    error /= len(labels)
    back = (error @ dense).reshape(x.shape).transpose(0, 2, 3, 1).reshape(kept[1][1].shape) * kept[1][1]
    grad_w1, grad_b1 = (back.T @ kept[1][0]).reshape(w1.shape), back.sum(axis=0)
    (n, h, w), channels = kept[1][2], w1.shape[1]
    parts = (back @ w1.reshape(len(w1), -1)).reshape(n, h, w, channels, 3, 3)
    below = np.zeros((n, channels, 2 * h + 2, 2 * w + 2), np.float32)
    for i in range(3):
        for j in range(3):
            below[:, :, i : i + 2 * h : 2, j : j + 2 * w : 2] += parts[..., i, j].transpose(0, 3, 1, 2)
    back = below[:, :, 1:-1, 1:-1].transpose(0, 2, 3, 1).reshape(kept[0][1].shape) * kept[0][1]
    grad_w0, grad_b0 = (back.T @ kept[0][0]).reshape(w0.shape), back.sum(axis=0)
    return grad_w0, grad_w1, grad_b0, grad_b1, error.T @ features, error.sum(axis=0)


def trained(steps=300):
    """The trained model: two convolutions with SiLU and one for the classes."""
    rng = np.random.default_rng(0)
    parameters = [rng.normal(0, np.sqrt(2 / (9 * i)), (o, i, 3, 3)).astype(np.float32) for o, i in _CHANNELS]
    parameters += [np.zeros(o, np.float32) for o, _ in _CHANNELS]
    parameters += [
        rng.normal(0, 0.05, (len(SHAPES), 16 * _GRID**2)).astype(np.float32),
        np.zeros(len(SHAPES), np.float32),
    ]
    first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))
    images, labels = pictures(1, 1000)
    for step in range(1, steps + 1):
        chosen = rng.integers(0, len(images), 64)
        for k, gradient in enumerate(_gradients(parameters, images[chosen], labels[chosen])):
            # Adam.
            first[k] = 0.9 * first[k] + 0.1 * gradient
            second[k] = 0.999 * second[k] + 0.001 * gradient**2
            rate = 4e-3 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            parameters[k] = (parameters[k] - rate * first[k] / (np.sqrt(second[k]) + 1e-8)).astype(np.float32)
    return _as_onnx(parameters)


def _as_onnx(parameters):
    w0, w1, b0, b1, dense, bias = parameters
    nodes, value = [], "images"
    for i in range(2):
        attributes = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}
        nodes.append(helper.make_node("Conv", [value, f"w{i}", f"b{i}"], [f"z{i}"], f"conv{i}", **attributes))
        nodes.append(helper.make_node("Sigmoid", [f"z{i}"], [f"s{i}"], f"sigmoid{i}"))
        nodes.append(helper.make_node("Mul", [f"z{i}", f"s{i}"], [value := f"a{i}"], f"mul{i}"))
    nodes.append(helper.make_node("Conv", [value, "w2", "b2"], ["scores"], "classes", kernel_shape=[_GRID, _GRID]))
    weights = {"w0": w0, "w1": w1, "w2": dense.reshape(-1, 16, _GRID, _GRID), "b0": b0, "b1": b1, "b2": bias}
    ends = {"images": (1, 3, SIZE, SIZE)}, {"scores": (1, len(SHAPES), 1, 1)}
    return given_model(nodes, *ends, weights, opset=13)
