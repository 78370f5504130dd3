"""Errors, signals and files: what every layer may import. It imports nothing else of the project."""
