"""Timelines of RTL runs: instructions on their units, as Chrome/Perfetto trace and as CSV."""

from .events import Event, events
from .export import to_chrome, to_csv, write_chrome, write_csv

__all__ = ["Event", "events", "to_chrome", "to_csv", "write_chrome", "write_csv"]
