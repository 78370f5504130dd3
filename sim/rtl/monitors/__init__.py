"""Protocol monitors for the detailed bench: one file for each kind of interface, its rules numbered."""
