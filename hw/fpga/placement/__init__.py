"""Placement around nextpnr, on the JSON files that it writes: a flow calls these four functions between its runs.

1. `rearrange` assigns multipliers and RAMs to the sites with the least wire, after a first placement.
2. `shorten` moves cells on the longest paths, after the second placement.
3. `ignore_delays` lets nextpnr route for wire length only.
4. `reopen` removes the longest paths from a routed layout, so that nextpnr routes them again for a higher clock.
"""

from intloom.hw.fpga.placement.routing import ignore_delays, reopen
from intloom.hw.fpga.placement.shortening import Shortened, shorten
from intloom.hw.fpga.placement.sites import rearrange

__all__ = ["Shortened", "ignore_delays", "rearrange", "reopen", "shorten"]
