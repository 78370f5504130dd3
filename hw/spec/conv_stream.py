"""Where the constants of a CONV lie in the weight memory, in words from its field `weights` on; see `formats`."""

from dataclasses import dataclass

from intloom.hw.spec.fields import TableUse
from intloom.hw.spec.formats import conv_tiles
from intloom.hw.spec.isa import Fields
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True, kw_only=True)
class ConvStream:
    """The layout of one CONV's constants."""

    params: HardwareParams
    table: bool
    """The stream begins with a table."""
    residual: bool
    """Residual constants follow."""
    zero_points: bool
    """Zero points of its weights precede the tiles of each output block."""
    out_blocks: int
    tiles: int
    """Weight tiles of one output block."""

    @property
    def residual_start(self) -> int:
        """First word of the residual constants."""
        return self.params.table_words * self.table

    @property
    def blocks_start(self) -> int:
        """First word of the first output block."""
        return self.residual_start + self.params.residual_words * self.residual

    @property
    def block_words(self) -> int:
        """Words of an output block: channel constants, zero points and tiles."""
        zero_points = self.params.zero_point_words * self.zero_points
        return self.params.channel_words + zero_points + self.tiles * self.params.tile_words

    @property
    def words(self) -> int:
        """Words of the whole stream."""
        return self.blocks_start + self.out_blocks * self.block_words


def continuable_pixels(conv: Fields, params: HardwareParams) -> int:
    """Pixels of a CONV whose sums the next one may continue, or that may continue those before; 0: none."""
    pixels = conv["out_h"] * conv["out_w"]
    one_strip = conv["out_blocks"] == 1 and pixels <= params.strip
    return pixels if one_strip else 0


def conv_stream(conv: Fields, params: HardwareParams) -> ConvStream:
    """The layout of the constants that a CONV reads."""
    return ConvStream(
        params=params,
        table=conv["table"] == TableUse.LOAD,
        residual=bool(conv["residual"]),
        zero_points=bool(conv["weight_zero_points"]),
        out_blocks=conv["out_blocks"],
        tiles=conv_tiles(conv),
    )
