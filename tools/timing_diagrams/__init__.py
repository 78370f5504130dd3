"""Timing diagrams of the manual: recorded from a simulation of the real component, stored as WaveDrom sources.

`python -m tools.timing_diagrams` records every diagram again; a test compares the stored sources with a new recording.
"""
