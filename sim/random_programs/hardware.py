"""Random legal hardware parameters."""

import random

from intloom.common.errors import ParameterError
from intloom.hw.spec.params import DATA_BITS, PRESETS, HardwareParams, changed, from_dict

RANDOM_SETS = 20
HARDWARE_COUNT = len(PRESETS) + RANDOM_SETS


def hardware_of(seed: int) -> HardwareParams:
    """The hardware of a random program: each preset and 20 random sets of parameters in turn."""
    number = seed % HARDWARE_COUNT
    return [*PRESETS.values()][number] if number < len(PRESETS) else random_parameters(number)


def random_parameters(seed: int) -> HardwareParams:
    """Random legal parameters of hardware that simulates fast; equal seeds give equal parameters."""
    rng = random.Random(seed)
    while True:
        rows, cols = rng.choice((4, 4, 8, 8, 16)), rng.choice((4, 4, 8, 16, 64))
        match = rng.choice(("ort", "exact"))
        values = {
            "rows": rows,
            "cols": cols,
            "lanes": rng.choice((1, 2, 4, 8)),
            "strip": rng.choice((16, 32, 64, 128, 256)),
            "scratch_kib": rng.choice((4, 8, 16, 32, 64)),
            "scratch_banks": rng.choice((2, 4, 8, 16)),
            "weight_kib": rng.choice((2, 4, 8, 16, 32)),
            "axi_addr_bits": rng.choice((32, 33, 36, 40, 64, rng.randint(32, 64))),
            "axi_burst": rng.choice((4, 8, 16, 32, 64, 128, 256)),
            "axi_outstanding": rng.choice((1, 2, 4, 8, 16, 32)),
            "axi_prot": rng.randrange(8),
            "axi_user_bits": rng.choice((0, 0, 1, 8)),
            "register_errors": rng.random() < 0.7,
            "mantissa_bits": 24 if match == "ort" else rng.randint(8, 24),
            "acc_bits": rng.choice((20, 24, 32, rng.randint(20, 32))),
            "match": match,
            "queue_depth": rng.choice((2, 4, 8, 64)),
            "vector_multiply": rng.random() < 0.8,
            "vector_average": rng.random() < 0.8,
            "vector_lanes": rng.choice((0, 1, 2, 4, 8)),
            "lut_products": rng.randint(0, rows * cols),
            "trace": rng.random() < 0.5,
            "clock_gating": rng.random() < 0.7,
            "vector_softmax": rng.random() < 0.7,
            "vector_norm": rng.random() < 0.7,
            "vector_depthwise": rng.random() < 0.7,
            "weight_sums": rng.random() < 0.7,
            "memory_parity": rng.random() < 0.5,
            "word_code": rng.random() < 0.7,
            "constant_check": rng.random() < 0.7,
        }
        try:
            params = from_dict(values)
        except ParameterError:
            continue
        # From a sequence of its own: recorded results name the other parameters by their seed.
        bits = random.Random(f"{seed} port").choice((params.word_bits, *DATA_BITS))
        return changed(params, {"axi_data_bits": bits})
