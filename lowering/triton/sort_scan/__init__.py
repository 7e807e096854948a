"""Sorting, top-k, scans, and scatters in a fixed order."""
