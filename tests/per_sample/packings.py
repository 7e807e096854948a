"""Packings: how a dictionary of parameters becomes what the loss is given, and back."""

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as jnp


def pack(packing: str, made: dict[str, Any]) -> tuple[Any, Callable[[Any, Any], dict[str, Any]]]:
    """The tree of the parameters, and what makes a dictionary of it, at a dtype."""
    names = sorted(made)
    if packing == "list":
        return [made[n] for n in names], lambda ws, _: dict(zip(names, ws, strict=True))
    if packing == "nested":
        layers = sorted({n.partition(".")[0] for n in names})
        return ({l: tuple(made[n] for n in names if n.partition(".")[0] == l) for l in layers},
                lambda ws, _: {n: w for l in layers for n, w in zip(
                    [n for n in names if n.partition(".")[0] == l], ws[l], strict=True)})
    if packing == "flat":
        shapes = [made[n].shape for n in names]
        ends = np.cumsum([int(np.prod(s)) for s in shapes])
        return (np.concatenate([made[n].ravel() for n in names]), lambda w, _: {
            n: w[e - int(np.prod(s)):e].reshape(s) for n, s, e in zip(names, shapes, ends)})
    if packing == "halves":  # the last bias always has a gradient
        frozen = {n: made[n] for n in names[::2] if n != "output.b"}
        return {n: w for n, w in made.items() if n not in frozen}, lambda ws, dtype: {
            **ws, **{n: jnp.asarray(w.astype(dtype)) for n, w in frozen.items()}}
    return made, lambda ws, _: ws
