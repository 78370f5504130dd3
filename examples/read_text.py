"""The text of a picture, read by the accelerator.

    python examples/read_text.py photograph.jpg --backend rtl -o out/read

A trained detector finds the lines and a trained recognizer reads them, both quantized to int8. Every byte on the
backend (golden, isa or rtl) is compared with the golden model and with onnxruntime. Without a picture, one is drawn.
"""

import argparse
import sys
from pathlib import Path

from intloom.common.errors import IntloomError
from intloom.reading.pretrained import pretrained
from intloom.reading.read import ReadOptions, read_text


def main() -> int:
    """Read the picture and print its lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path, nargs="?", help="default: a drawn photograph")
    parser.add_argument("--backend", default="isa", choices=["golden", "isa", "rtl"])
    parser.add_argument("-o", "--output", type=Path, default=Path("out/read"))
    given = parser.parse_args()
    options = ReadOptions(folder=given.output, picture=given.picture, backend=given.backend)
    try:
        done = read_text(pretrained(), options, say=print, tell=lambda _stage, _done, _all: None)
    except IntloomError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    for line in done.lines:
        print(line.text if line.text == line.float_text else f"{line.text}  (the float model reads {line.float_text})")
    print(done.page)
    return int(done.as_dict()["mismatches"] != 0)


if __name__ == "__main__":
    sys.exit(main())
