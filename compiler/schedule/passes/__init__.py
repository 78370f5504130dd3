"""Passes: rewrites of the integer graph that save cycles of the array; results stay the same bytes."""
