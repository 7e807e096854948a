"""Control flow for users, as in jax.lax: differentiable both ways, under vmap, nested at will."""

from functrans.lax.associative import associative_scan
from functrans.lax.branches import cond, switch
from functrans.lax.loops import fori_loop, map, scan, while_loop

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
