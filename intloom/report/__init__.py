"""Reports of runs: one HTML page that needs nothing else."""

from intloom.report.page import render, write_report

__all__ = ["render", "write_report"]
