"""A small program whose explanation is known line by line."""

import functrans.numpy as fnp


def loss(w, x):
    hidden = fnp.tanh(x @ w) * 1
    return (hidden * hidden).sum(axis=0)


def update(table, row):
    return table.at[2].set(row)
