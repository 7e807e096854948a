"""Checked programs: where a NaN, an infinity or a false condition first appears (checks.md).

A program is compiled with a few reductions more (`flags`), which say whether there is anything to
report at all. Only then it runs again, one equation after the other (`exact`), to say what.
"""
