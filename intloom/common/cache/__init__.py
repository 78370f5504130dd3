"""The cache on disk: its folder, entries that a process has pinned, and removal of entries that none has."""
