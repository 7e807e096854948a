"""Loops: in one kernel, in steps, or in turns."""
