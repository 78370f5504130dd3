"""The memories beside the units: scratchpad and weight memory."""
