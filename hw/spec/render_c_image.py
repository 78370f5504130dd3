"""The C header of the device image."""

from intloom.hw.spec import image_format
from intloom.hw.spec.c_text import enum, header
from intloom.hw.spec.image_format import RECORDS, ImageLayout, ImageRole, Record


def _record(record: Record) -> str:
    upper = f"INTLOOM_IMAGE_{record.name.upper()}"
    lines = [f"/* {record.doc} */", f"#define {upper}_SIZE {record.size}u"]
    lines += [f"#define {upper}_{m.name.upper()} {record.offset(m.name)}u /* {m.doc} */" for m in record.members]
    return "\n".join(lines) + "\n"


def render_image(file: str) -> str:
    """Byte offsets of the members of the image's records."""
    body = [
        f"#define INTLOOM_IMAGE_MAGIC 0x{image_format.MAGIC:08x}u",
        f"#define INTLOOM_IMAGE_VERSION {image_format.VERSION}u",
        f"#define INTLOOM_IMAGE_CHECKED_FROM {image_format.CHECKED_FROM}u",
        f"#define INTLOOM_NO_TENSOR 0x{image_format.NO_TENSOR:08x}u\n",
        enum("role", "ROLE", ((m.name, int(m)) for m in ImageRole)),
        enum("layout", "LAYOUT", ((m.name, int(m)) for m in ImageLayout)),
        *map(_record, RECORDS),
    ]
    about = "The device image: byte offsets of the members of its records; all are 32-bit and little-endian."
    return header(file, about, body)
