"""Recurrent cells as functions of parameters, state and input, for `lax.scan`.

A cell is `cell(params, state, x) -> (state, output)`; params are a dict of arrays with the features
of x and of the state first, so that `scan(partial(cell, params), state, xs)` runs a sequence. Axes
before the last are batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import functrans.numpy as jnp
from functrans import lax, random
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.nn import initializers
from functrans.nn.activations import sigmoid, tanh
from functrans.typing import Array, ArrayLike, DTypeLike, PyTree

__all__ = ["LSTMState", "gru_cell", "init_cell", "lstm_cell", "rnn_cell", "run_cell"]

T = TypeVar("T")
Params = Mapping[str, ArrayLike]
Cell = Callable[[Params, PyTree, Array], tuple[PyTree, Array]]


_GATES = {"rnn_cell": 1, "lstm_cell": 4, "gru_cell": 3}


class LSTMState(NamedTuple):
    """What an LSTM carries from step to step, each of shape (..., hidden).

    >>> ft.nn.LSTMState(hidden=jnp.zeros(2), cell=jnp.zeros(2))
    LSTMState(hidden=Array([0., 0.], dtype=float32), cell=Array([0., 0.], dtype=float32))
    """

    hidden: Array
    cell: Array


def init_cell(key: Array, cell: Cell, inputs: int, hidden: int,
              dtype: DTypeLike | None = None) -> dict[str, Array]:
    """Parameters of a cell: `input` (inputs, n hidden), `recurrent` (hidden, n hidden), `bias`.

    Input weights are Glorot uniform, recurrent ones orthogonal for each gate, biases 0, that of an
    LSTM's forget gate 1 (Jozefowicz et al., ICML 2015). Raises ArgumentError for other cells.

    >>> import functrans as ft
    >>> params = ft.nn.init_cell(ft.random.key(0), ft.nn.gru_cell, 3, 4)
    >>> params["input"].shape, params["recurrent"].shape, params["bias"].shape
    ((3, 12), (4, 12), (24,))
    """
    name = getattr(cell, "__name__", "")
    gates = _GATES.get(name)
    if gates is None:
        raise ArgumentError(f"init_cell has no parameters for {cell!r}.", where=user_source(),
                            fix="rnn_cell, lstm_cell or gru_cell")
    first, *others = random.split(key, 1 + gates)
    orthogonal = [initializers.orthogonal()(k, (hidden, hidden), dtype) for k in others]
    weights = initializers.glorot_uniform()(first, (inputs, gates * hidden), dtype)
    bias = jnp.zeros(gates * hidden, weights.dtype)
    if name == "lstm_cell":
        bias = bias.at[hidden:2 * hidden].set(1)
    if name == "gru_cell":  # those of the recurrent part are apart
        bias = jnp.concatenate([bias, bias])
    return {"input": weights, "recurrent": jnp.concatenate(orthogonal, 1), "bias": bias}


def rnn_cell(params: Params, state: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """tanh(x @ input + state @ recurrent + bias), as state and as output.

    Source: Elman, Finding structure in time, Cognitive Science 14 (1990).

    >>> import functrans as ft, functrans.numpy as jnp
    >>> params = ft.nn.init_cell(ft.random.key(0), ft.nn.rnn_cell, 3, 4)
    >>> state, out = ft.nn.rnn_cell(params, jnp.zeros((2, 4)), jnp.ones((2, 3)))
    >>> out.shape
    (2, 4)
    """
    out = tanh(jnp.matmul(x, params["input"]) + jnp.matmul(state, params["recurrent"])
               + params["bias"])
    return out, out


def lstm_cell(params: Params, state: LSTMState, x: ArrayLike) -> tuple[LSTMState, Array]:
    """A long short-term memory; the columns of weights are input, forget, cell and output gates.

    Source: Hochreiter and Schmidhuber (1997), with forget gates of Gers et al. (2000).

    >>> import functrans as ft, functrans.numpy as jnp
    >>> params = ft.nn.init_cell(ft.random.key(0), ft.nn.lstm_cell, 3, 4)
    >>> start = ft.nn.LSTMState(jnp.zeros(4), jnp.zeros(4))
    >>> ft.nn.run_cell(ft.nn.lstm_cell, params, start, jnp.ones((5, 3)))[1].shape
    (5, 4)
    """
    hidden, cell = state
    gates = (jnp.matmul(x, params["input"]) + jnp.matmul(hidden, params["recurrent"])
             + params["bias"])
    i, f, g, o = jnp.split(gates, 4, -1)
    cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
    hidden = sigmoid(o) * tanh(cell)
    return LSTMState(hidden, cell), hidden


def gru_cell(params: Params, state: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """A gated recurrent unit; columns of weights are reset and update gates and candidates.

    `bias` has those of the input part, then those of the recurrent part, whose candidates the reset
    gate multiplies with the bias (as in cuDNN). Source: Cho et al., EMNLP 2014.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> params = ft.nn.init_cell(ft.random.key(0), ft.nn.gru_cell, 3, 4)
    >>> ft.nn.gru_cell(params, jnp.zeros(4), jnp.ones(3))[1].shape
    (4,)
    """
    state = jnp.asarray(state)
    own, recurrent = jnp.split(jnp.asarray(params["bias"]), 2)
    a = jnp.split(jnp.matmul(x, params["input"]) + own, 3, -1)
    b = jnp.split(jnp.matmul(state, params["recurrent"]) + recurrent, 3, -1)
    reset, update = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    candidate = tanh(a[2] + reset * b[2])
    out = (1 - update) * candidate + update * state
    return out, out


def run_cell(cell: Cell, params: Params, state: T, xs: ArrayLike, *,
             reverse: bool = False) -> tuple[T, Array]:
    """The last state and the outputs of a cell over a sequence, whose first axis is time.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> params = ft.nn.init_cell(ft.random.key(0), ft.nn.rnn_cell, 3, 4)
    >>> state, outs = ft.nn.run_cell(ft.nn.rnn_cell, params, jnp.zeros(4), jnp.ones((5, 3)))
    >>> state.shape, outs.shape
    ((4,), (5, 4))
    """
    final, outs = lax.scan(partial(cell, params), state, xs, reverse=reverse)
    return final, outs
