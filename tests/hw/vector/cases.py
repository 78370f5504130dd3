"""Random vector instructions that stay inside a small scratchpad."""

import random
from typing import Any

from intloom.hw.spec.isa import Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import constant_words
from intloom.sim.random_programs.values import any_fields

_POOLS = (Kind.VMAX, Kind.VAVG)


class InstructionGenerator:
    """Makes instructions for hardware with at least 1024 scratchpad words."""

    def __init__(self, rng: random.Random, params: HardwareParams) -> None:
        self.rng = rng
        self.params = params
        self.half = params.scratch_words // 2

    def instruction(self, kind: Kind) -> Instruction:
        """One random instruction of `kind`, reading the lower half of memory and writing the upper half."""
        return make(kind, **any_fields(self.rng, kind, self.params) | self._chosen(kind))

    def _chosen(self, kind: Kind) -> dict[str, int]:
        """The fields that keep it inside its half and short."""
        if kind in (Kind.VTABLE, Kind.VEXP):
            return {"a_base": self.rng.randrange(self.half - self.params.table_words)}
        if kind is Kind.VDEPTHWISE:
            return self._depthwise()
        fields = self._output()
        size = (fields["out_h"], fields["out_w"])
        if kind is Kind.VCOPY:
            fields |= self._copy(fields)
        elif kind is Kind.VSOFTMAX:
            fields |= self._operand("a", size, fields["blocks"])
            fields["last_bytes"] = self.rng.randint(1, self.params.word_bytes)
        elif kind in _POOLS:
            fields |= self._pool(kind, fields["blocks"])
        else:
            fields |= self._operand("a", size, fields["blocks"]) | self._operand("b", size, fields["blocks"])
        if kind in (Kind.VADD, Kind.VMUL, Kind.VAVG):
            fields |= self._affine(kind)
        return fields

    def _output(self) -> dict[str, int]:
        rng = self.rng
        h, w, blocks, x = rng.randint(1, 6), rng.randint(1, 7), rng.randint(1, 3), rng.randint(1, 3)
        row = w * x + rng.randint(0, 3)
        plane = h * row + rng.randint(0, 3)
        base = self.half + rng.randint(0, self.half - blocks * plane)
        return {
            "out_h": h,
            "out_w": w,
            "blocks": blocks,
            "out_x": x,
            "out_row": row,
            "out_plane": plane,
            "out_base": base,
        }

    def _depthwise(self) -> dict[str, int]:
        """Input and constants anywhere in the lower half; rings of any height."""
        rng = self.rng
        output = self._output()
        kernel, row = rng.choice((1, 3, 3, rng.randint(1, 7))), rng.randint(9, 12)
        reach = (output["out_h"] - 1) * 4 + kernel
        ring = rng.choice((0, row * rng.randint(1, kernel + 3)))
        size = (rng.randint(1, 9), rng.randint(1, 9))
        return {
            **{name: output[name] for name in ("out_h", "out_w", "out_x", "out_row", "out_base")},
            "a_base": rng.randrange(self.half - (ring or reach * row) - row),
            "a_row": row,
            "a_ring": ring,
            "a_row_off": rng.randrange(ring) // row * row if ring else 0,
            "in_h": size[0],
            "in_w": size[1],
            "iy0": rng.randint(-3, size[0]),
            "ix0": rng.randint(-3, size[1]),
            "kernel_h": kernel,
            "stride_h": rng.randint(1, 4),
            "stride_w": rng.randint(1, 4),
            "b_base": rng.randrange(self.half - constant_words(kernel)),
        }

    def _operand(self, name: str, size: tuple[int, int], blocks: int, step: int = 1) -> dict[str, int]:
        rng = self.rng
        row = size[1] * step + rng.randint(0, 3)
        plane = size[0] * row + rng.randint(0, 3)
        base = rng.randint(0, self.half - blocks * plane)
        return {f"{name}_row": row, f"{name}_plane": plane, f"{name}_base": base}

    def _copy(self, output: dict[str, int]) -> dict[str, int]:
        rng, n = self.rng, self.params.word_bytes
        up_h, up_w, step = rng.randint(1, 3), rng.randint(1, 3), rng.randint(0, 3)
        size = (-(-output["out_h"] // up_h), -(-output["out_w"] // up_w))
        first = rng.randrange(n)
        return {
            **self._operand("a", size, output["blocks"], max(step, 1)),
            "a_x": step,
            "up_h": up_h,
            "up_w": up_w,
            "rotate": rng.randrange(n),
            "first_byte": first,
            "byte_count": rng.randint(1, n - first),
        }

    def _pool(self, kind: Kind, blocks: int) -> dict[str, int]:
        rng = self.rng
        if kind is Kind.VMAX and rng.random() < 0.6:
            kernel = rng.choice(((1, rng.randint(1, 7)), (rng.randint(1, 7), 1)))
            stride = rng.choice(((1, 1), (1, 1), (2, 1), (1, 2)))
        else:
            kernel = (rng.randint(1, 4), rng.randint(1, 4))
            stride = (rng.randint(1, 3), rng.randint(1, 3))
        in_size = (rng.randint(1, 9), rng.randint(1, 9))
        fields = self._operand("a", in_size, blocks)
        return {
            **fields,
            "in_h": in_size[0],
            "in_w": in_size[1],
            "iy0": rng.randint(-4, in_size[0]),
            "ix0": rng.randint(-4, in_size[1]),
            "kernel_h": kernel[0],
            "kernel_w": kernel[1],
            "stride_h": stride[0],
            "stride_w": stride[1],
        }

    def _affine(self, kind: Kind) -> dict[str, Any]:
        """Constants that keep most results away from the clamp, and now and then any at all."""
        rng = self.rng
        if rng.random() < 0.2:
            m1, c, shift = (
                rng.randint(-(1 << 31), (1 << 31) - 1),
                rng.randint(-(1 << 47), (1 << 47) - 1),
                rng.randint(0, 47),
            )
        else:
            shift = rng.randint(0, 30)
            m1 = rng.randint(-(1 << shift), 1 << shift) >> (0 if kind is Kind.VADD else 6)
            c = rng.randint(-(1 << shift), 1 << shift) << 5
        m2 = m1 if kind is not Kind.VADD else rng.randint(-abs(m1), abs(m1))
        return {"m1": m1, "m2": m2, "c": c, "shift": shift}
