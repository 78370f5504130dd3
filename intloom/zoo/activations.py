"""Activation functions and elementwise helpers, named as exporters name them."""

from collections.abc import Callable

import numpy as np

from intloom.zoo.builder import Builder, Target, Value

Activation = Callable[[Builder, str, Value], Value]
"""Adds an activation function below a path."""

ABOVE_ZERO = 2.2
"""Mean before a ReLU, in standard deviations: few values are negative, so few results are zero."""


def relu(b: Builder, path: str, x: Value) -> Value:
    """ReLU."""
    return b.op(f"{path}/Relu", "Relu", [x], x.channels)


def relu6(b: Builder, path: str, x: Value) -> Value:
    """ReLU6 as a Clip."""
    low = b.constant("relu6.low", np.array(0.0, np.float32))
    high = b.constant("relu6.high", np.array(6.0, np.float32))
    return b.op(f"{path}/Clip", "Clip", [x, low, high], x.channels)


def silu(b: Builder, path: str, x: Value) -> Value:
    """SiLU: `x * sigmoid(x)`."""
    gate = b.op(f"{path}/Sigmoid", "Sigmoid", [x], x.channels)
    return b.op(f"{path}/Mul", "Mul", [x, gate], x.channels)


def hard_swish(b: Builder, path: str, x: Value) -> Value:
    """HardSwish: `x * clip(x / 6 + 0.5, 0, 1)`."""
    return b.op(f"{path}/HardSwish", "HardSwish", [x], x.channels)


def gelu(b: Builder, path: str, x: Value) -> Value:
    """GELU by the error function: `x * (erf(x / sqrt(2)) + 1) / 2`."""
    root = b.constant("gelu.root", np.array(np.sqrt(2.0), np.float32))
    one, half = b.constant("gelu.one", np.array(1.0, np.float32)), b.constant("gelu.half", np.array(0.5, np.float32))
    y = b.op(f"{path}/Div", "Div", [x, root], x.channels)
    y = b.op(f"{path}/Erf", "Erf", [y], x.channels)
    y = b.op(f"{path}/Add", "Add", [y, one], x.channels)
    y = b.op(f"{path}/Mul", "Mul", [x, y], x.channels)
    return b.op(f"{path}/Mul_1", "Mul", [y, half], x.channels)


def squeeze_excitation(b: Builder, path: str, x: Value, hidden: int, *, spread: float = 1.0) -> Value:
    """Scale channels by a gate from their means: 1x1 convolutions with ReLU and HardSigmoid.

    `spread` is the standard deviation before the HardSigmoid.
    """
    y = b.op(f"{path}/avgpool/GlobalAveragePool", "GlobalAveragePool", [x], x.channels)
    y = relu(b, f"{path}/activation", b.conv(f"{path}/fc1", y, hidden, target=Target(ABOVE_ZERO, per_channel=False)))
    y = b.conv(f"{path}/fc2", y, x.channels, target=Target(1.0, spread, per_channel=False))
    y = b.op(f"{path}/scale_activation/HardSigmoid", "HardSigmoid", [y], x.channels, alpha=1 / 6, beta=0.5)
    return b.op(f"{path}/Mul", "Mul", [y, x], x.channels)
