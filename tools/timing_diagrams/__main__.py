"""Write the WaveDrom source of every timing diagram: `python -m tools.timing_diagrams`."""

from tools.timing_diagrams.catalogue import DIAGRAMS, source_path, source_text


def main() -> None:
    """Record and write every diagram."""
    for name in DIAGRAMS:
        path = source_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source_text(name), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
