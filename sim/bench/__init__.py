"""Measures how fast the benches simulate."""
