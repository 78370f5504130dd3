"""Tools for working on the project itself; nothing here is part of the distribution."""
