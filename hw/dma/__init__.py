"""DMA: 3-D strided transfers between memory and the on-chip memories, in AXI bursts."""
