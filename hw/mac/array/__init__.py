"""Pixel fetch, the MAC array and its accumulators."""
