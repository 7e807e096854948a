"""A small program whose explanation is known line by line."""

import functrans.numpy as jnp


def loss(w, x):
    hidden = jnp.tanh(x @ w) * 1
    return (hidden * hidden).sum(axis=0)


def update(table, row):
    return table.at[2].set(row)
