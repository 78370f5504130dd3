"""The command line: one short file per subcommand, errors caught in one place."""

from .main import main

__all__ = ["main"]
