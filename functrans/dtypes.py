"""Dtypes by name, and what they are: as jax.dtypes.

>>> import functrans as ft
>>> dtypes.issubdtype(ft.random.key(0).dtype, dtypes.prng_key)
True
"""
