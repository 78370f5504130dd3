"""Frames per second against LUTs for networks of README, as docs/assets/front.svg: `make front`."""

import sys
from pathlib import Path

import intloom
from intloom.common.atomic_write import write_text
from intloom.flow.networks import quantized_network
from intloom.report.front import front_svg

NETWORKS = {
    "YOLOv8n-cls, 224x224": ("yolov8n-cls", 224),
    "SSD with MobileNetV1, 300x300": ("ssd_mobilenet_v1", 300),
    "YOLOv8n, 320x320": ("yolov8n", 320),
}
SPACE = {"preset": "base", "rows": [8, 16, 32], "cols": [16, 64], "scratch_kib": 256, "weight_kib": 256, "strip": 64}
DEVICE, MHZ = "XC7K325T", 100.0
PICTURE = Path("docs/assets/front.svg")


def main() -> int:
    """Explore every network and draw all fronts."""
    fronts = {}
    for label, (name, size) in NETWORKS.items():
        done = intloom.explore(quantized_network(name, size), SPACE, device=DEVICE, jobs=2, mhz=MHZ)
        fronts[label] = [(row["LUT"], row["fps"]) for row in done.rows() if row["front"]]
        print(label, fronts[label], flush=True)
    write_text(PICTURE, front_svg(fronts, "LUT, estimated, 7 series", f"frames/s, forecast at {MHZ:g} MHz"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
