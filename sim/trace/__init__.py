"""Timelines of RTL runs: instructions on their units, as Chrome/Perfetto trace and as CSV."""

from intloom.sim.trace.events import Event, events
from intloom.sim.trace.export import to_chrome, to_csv

__all__ = ["Event", "events", "to_chrome", "to_csv"]
