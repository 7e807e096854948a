"""Loops: in one resident kernel, as launches, or double-buffered."""
