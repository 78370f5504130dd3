"""Choice of an accelerator: forecast of many configurations, with their area, memory traffic and energy."""
