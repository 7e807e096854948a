"""Attention, recognised in a program that spells it out."""
