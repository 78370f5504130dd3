"""Random annotations and detections in COCO's form, for which pycocotools 2.0.11 gives the figures below."""

import numpy as np

POINTS = 17
# stats[0] and stats[1] of COCOeval, and the mean precision of each class over thresholds and recalls.
PYCOCOTOOLS = {
    "detect": (
        0.12234206613938704,
        0.3828894654171299,
        [0.1618233251896618, 0.027315084449621437, 0.17788778877887787],
    ),
    "pose": (0.0135038503850385, 0.0418041804180418, [0.0, 0.0026402640264026403, 0.03787128712871286]),
}


def random_case():
    """Annotations with crowds and objects without key points, and detections with equal scores and wrong classes."""
    rng = np.random.default_rng(7)
    images, annotations, detections = [], [], []
    for i in range(1, 13):
        images.append({"id": i, "file_name": f"{i}.png", "width": 200, "height": 200})
        for _ in range(rng.integers(0, 6)):
            x, y = rng.uniform(0, 140, 2)
            w, h = rng.uniform(10, 60, 2)
            crowd, points = int(rng.random() < 0.15), []
            for _ in range(POINTS):
                points += [x + rng.random() * w, y + rng.random() * h, int(rng.integers(0, 3))]
            if rng.random() < 0.2:
                points = [0.0] * (3 * POINTS)
            label = int(rng.integers(1, 4))
            annotations.append(
                {
                    "id": len(annotations) + 1, "image_id": i, "category_id": label, "bbox": [x, y, w, h],
                    "area": w * h * 0.6, "iscrowd": crowd, "keypoints": points,
                }
            )  # fmt: skip
            for _ in range(rng.integers(0, 4)):
                j, found = rng.normal(0, 6, 4), []
                for k in range(POINTS):
                    found += [points[3 * k] + rng.normal(0, 5), points[3 * k + 1] + rng.normal(0, 5), 1.0]
                detections.append(
                    {
                        "image_id": i,
                        "category_id": label if rng.random() < 0.85 else int(rng.integers(1, 4)),
                        "bbox": [x + j[0], y + j[1], max(3, w + j[2]), max(3, h + j[3])],
                        "score": float(np.round(rng.random(), 2)),
                        "keypoints": found,
                    }
                )
    categories = [{"id": c, "name": f"c{c}"} for c in (1, 2, 3)]
    return {"images": images, "annotations": annotations, "categories": categories}, detections
