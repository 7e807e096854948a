"""Sorting, selection, running folds, and scatters in a fixed order."""
