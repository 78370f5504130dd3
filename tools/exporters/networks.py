"""The networks in PyTorch: a classifier, a detector and an attention block, with seeded weights."""

from typing import Any

import torch
from torch import Tensor, nn


def _unit(channels: tuple[int, int], kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution with batch normalization."""
    conv = nn.Conv2d(*channels, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(channels[1]))


class Classifier(nn.Module):
    """A residual block, a depthwise convolution, pooling and a classifier tail."""

    shape = (1, 3, 32, 32)

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first, self.second = _unit((3, 16), stride=2), _unit((16, 16)), _unit((16, 16))
        self.depthwise, self.pointwise = _unit((16, 16), groups=16), _unit((16, 32), 1)
        self.relu, self.relu2, self.relu3 = nn.ReLU(), nn.ReLU(), nn.ReLU()
        self.relu4, self.relu5 = nn.ReLU6(), nn.ReLU()
        self.pool, self.average, self.flat = nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        self.linear = nn.Linear(32, 10)

    def forward(self, image: Tensor) -> Tensor:
        """Compute the result."""
        x = self.relu(self.stem(image))
        x = self.relu3(self.second(self.relu2(self.first(x))) + x)
        x = self.relu5(self.pointwise(self.relu4(self.depthwise(self.pool(x)))))
        scores: Tensor = self.linear(self.flat(self.average(x)))
        return scores


class Detector(nn.Module):
    """Two scales with Resize, Concat and Split, and a head of boxes and classes as in YOLO."""

    shape = (1, 3, 32, 32)

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.down = _unit((3, 16), stride=2), _unit((16, 32), stride=2)
        self.join, self.inner, self.out = _unit((48, 32), 1), _unit((16, 16)), _unit((48, 24), 1)
        self.up = nn.Upsample(scale_factor=2.0, mode="nearest")
        self.act1, self.act2, self.act3, self.act4, self.act5 = (nn.SiLU() for _ in range(5))
        self.fine, self.coarse = nn.Conv2d(24, 12, 1), nn.Conv2d(32, 12, 1)

    def forward(self, image: Tensor) -> Tensor:
        """Compute the result."""
        fine = self.act1(self.stem(image))
        coarse = self.act2(self.down(fine))
        x = self.act3(self.join(torch.cat([self.up(coarse), fine], 1)))
        left, right = x.chunk(2, 1)
        x = self.act5(self.out(torch.cat([left, right, self.act4(self.inner(right))], 1)))
        heads = torch.cat([self.fine(x).view(1, 12, 256), self.coarse(coarse).view(1, 12, 64)], 2)
        return torch.cat([heads[:, :4], heads[:, 4:].sigmoid()], 1)


class Attention(nn.Module):
    """A transformer block of two heads over 16 tokens."""

    shape = (1, 16, 32)

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.project = nn.Linear(32, 96), nn.Linear(32, 32)
        self.expand, self.gelu, self.reduce = nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)

    def forward(self, tokens: Tensor) -> Tensor:
        """Compute the result."""
        q, k, v = self.qkv(self.norm1(tokens)).reshape(1, 16, 3, 2, 16).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * 0.25, -1)
        x = tokens + self.project((weights @ v).transpose(1, 2).reshape(1, 16, 32))
        result: Tensor = x + self.reduce(self.gelu(self.expand(self.norm2(x))))
        return result


NETWORKS: dict[str, Any] = {"classifier": Classifier, "detector": Detector, "attention": Attention}


def network(name: str) -> nn.Module:
    """A network whose weights and statistics depend on the seed only."""
    torch.manual_seed(7)
    module: nn.Module = NETWORKS[name]()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.running_mean, -0.2, 0.2)
            nn.init.uniform_(part.running_var, 0.2, 0.6)
    return module.eval()


def samples(name: str, count: int = 8) -> list[Tensor]:
    """Inputs for calibration."""
    torch.manual_seed(3)
    return [torch.rand(NETWORKS[name].shape) for _ in range(count)]
