"""Random programs: DAGs of operations and of blocks (jit, scan, cond, grad, ...) on a few inputs.

A program is plain data. Which operation a node stands for is decided when it runs, among those that
fit the shapes and dtypes at hand, which are the same in every interpretation of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core import dtypes

MAX_SIZE = 64


@dataclass(frozen=True)
class Operation:
    """`apply(choice, *args)`; one letter of `kinds` (f, i, c) per operand."""

    name: str
    kinds: str
    fits: Callable[..., bool]
    apply: Callable[..., Any]


@dataclass(frozen=True)
class Node:
    """One operation (`body` is empty) or one block with a program inside."""

    pick: int
    operands: tuple[int, int, int]
    choice: int
    body: tuple[Node, ...] = ()


def always(*args: Any) -> bool:
    return True


def has_rank(n: int) -> Callable[..., bool]:
    return lambda *args: args[0].ndim >= n


def broadcastable(x: Any, y: Any) -> bool:
    pairs = zip(x.shape[::-1], y.shape[::-1], strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs) and \
        np.prod(np.broadcast_shapes(x.shape, y.shape)) <= MAX_SIZE


def axis(x: Any, choice: int) -> int:
    return choice % (2 * x.ndim) - x.ndim


def some_shape(x: Any, choice: int) -> tuple[int, ...]:
    n = int(np.prod(x.shape))
    shapes = [(n,), (1, n), (n, 1), (-1,)] + [(d, n // d) for d in (2, 3) if n % d == 0]
    return shapes[choice % len(shapes)]


def indices(i: Any, n: int) -> Any:
    """Integers that are indices of an axis of size n, some of them negative."""
    return i % (2 * n) - n


def spd(x: Any) -> Any:
    return x @ x.T + 2.0 * jnp.eye(x.shape[0], dtype=x.dtype)


def is_square(x: Any, *_: Any) -> bool:
    return x.ndim == 2 and x.shape[0] == x.shape[1]


def multiplies(x: Any, y: Any) -> bool:
    return x.ndim >= 1 and y.ndim == 2 and x.shape[-1] == y.shape[0]


def conv(choice: int, x: Any) -> Any:
    kernel = jnp.sin(x.reshape(-1)[:4].mean() + jnp.arange(4.0, dtype=x.dtype)).reshape(1, 1, 2, 2)
    image = x.reshape(1, 1, *x.shape)
    out = lax.conv_general_dilated(image, kernel, (1, 1 + choice % 2), [(1, 0), (0, 1)],
                                   lhs_dilation=(1, 1), rhs_dilation=(1 + choice % 2, 1))
    return out[0, 0]


def concatenates(x: Any, y: Any) -> bool:
    return 1 <= x.ndim == y.ndim and x.shape[1:] == y.shape[1:] and x.size + y.size <= MAX_SIZE


SMALL = lambda *a: a[0].size * 2 <= MAX_SIZE
UNARY = {
    "sin": jnp.sin, "tanh": jnp.tanh, "exp": lambda x: jnp.exp(-x * x), "neg": lambda x: -x,
    "sqrt": lambda x: jnp.sqrt(1.0 + x * x), "log": lambda x: jnp.log(1.5 + jnp.sin(x)),
    "logistic": ft.nn.sigmoid, "softplus": ft.nn.softplus, "square": jnp.square, "abs": jnp.abs,
    "cube": lambda x: x ** 3, "relu": ft.nn.relu, "clip": lambda x: jnp.clip(x, -0.7, 0.8),
    "where": lambda x: jnp.where(x > 0.1, x * 2.0, 0.3), "expm1": lambda x: jnp.expm1(jnp.sin(x)),
    "floor": lambda x: x - jnp.floor(x), "numpy": np.cos, "erf": lax.erf,
    "arctan": jnp.arctan, "sinc": jnp.sinc, "copy": lambda x: x.copy(),
    "float32": lambda x: x.astype("float32").astype("float64") * 0.0 + x,
}
BINARY = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply,
    "div": lambda x, y: x / (1.5 + jnp.sin(y)), "maximum": jnp.maximum, "minimum": jnp.minimum,
    "power": lambda x, y: (1.5 + jnp.sin(x)) ** y, "atan2": lambda x, y: jnp.arctan2(x, y + 3.0),
    "select": lambda x, y: jnp.where(x > y, jnp.sin(x), y), "logaddexp": jnp.logaddexp,
    "hypot": lambda x, y: jnp.hypot(x, y + 2.5), "rem": lambda x, y: jnp.remainder(x, 2.0 + y * y),
    "reversed": lambda x, y: 2.0 - y * x, "radd": lambda x, y: np.float64(1.5) + x * y,
}
REDUCTIONS = {
    "sum": jnp.sum, "mean": jnp.mean, "max": jnp.max, "min": jnp.min, "prod": jnp.prod,
    "var": jnp.var, "logsumexp": ft.nn.logsumexp,
}
ALONG = {
    "cumsum": jnp.cumsum, "cumprod": jnp.cumprod,
    "cummax": lambda x, axis: lax.cummax(x, axis % x.ndim),
    "cumsum_rev": lambda x, axis: lax.cumsum(x, axis % x.ndim, reverse=True),
    "cumlogsumexp": lambda x, axis: lax.cumlogsumexp(x, axis % x.ndim),
    "sort": jnp.sort, "softmax": ft.nn.softmax, "flip": jnp.flip,
    "diff": lambda x, axis: jnp.diff(x, axis=axis, prepend=jnp.take(x, jnp.array([0]), axis=axis)),
    "roll": lambda x, axis: jnp.roll(x, 1, axis), "argsorted": lambda x, axis: jnp.take_along_axis(
        x, jnp.argsort(jnp.sin(3.0 * x), axis=axis), axis),
    "associative": lambda x, axis: lax.associative_scan(lambda a, b: a * 0.5 + b * jnp.cos(a), x,
                                                        axis=axis % x.ndim),
}

OPERATIONS = [
    *[Operation(n, "f", always, lambda c, x, f=f: f(x)) for n, f in UNARY.items()],
    *[Operation(n, "ff", broadcastable, lambda c, x, y, f=f: f(x, y)) for n, f in BINARY.items()],
    *[Operation(n, "f", has_rank(1), lambda c, x, f=f: f(
        x, axis=axis(x, c), keepdims=bool(c // 8 % 2))) for n, f in REDUCTIONS.items()],
    *[Operation(n, "f", has_rank(1), lambda c, x, f=f: f(x, axis=axis(x, c)))
      for n, f in ALONG.items()],
    Operation("sum_all", "f", always, lambda c, x: x.sum()),
    Operation("norm", "f", has_rank(1), lambda c, x: jnp.linalg.norm(x + 3.0)),
    Operation("top_k", "f", has_rank(1), lambda c, x: lax.top_k(x, 1 + c % x.shape[-1])[0]),
    Operation("reshape", "f", always, lambda c, x: x.reshape(some_shape(x, c))),
    Operation("transpose", "f", has_rank(2), lambda c, x: jnp.swapaxes(x, 0, axis(x, c))),
    Operation("expand", "f", lambda x: x.ndim < 3, lambda c, x: jnp.expand_dims(
        x, c % (x.ndim + 1))),
    Operation("squeeze", "f", always, lambda c, x: jnp.squeeze(x)),
    Operation("broadcast", "f", SMALL, lambda c, x: jnp.broadcast_to(x, (2, *x.shape))),
    Operation("tile", "f", SMALL, lambda c, x: jnp.tile(x, 2)),
    Operation("concatenate", "ff", concatenates, lambda c, x, y: jnp.concatenate([x, y, x])),
    Operation("stack", "ff", lambda x, y: x.shape == y.shape and x.size < 32,
              lambda c, x, y: jnp.stack([x, y], c % (x.ndim + 1))),
    Operation("pad", "f", has_rank(1), lambda c, x: jnp.pad(
        x, [(0, 0)] * (x.ndim - 1) + [(1, c % 2)], mode=("constant", "edge", "wrap")[c % 3])),
    Operation("pad_inside", "f", lambda x: x.ndim == 1, lambda c, x: lax.pad(
        x, jnp.sum(x) * 0.1, [(-1 if x.size > 1 else 0, 1, c % 2)])),
    Operation("slice", "f", has_rank(1), lambda c, x: x[::(-1, 2, -2, 1)[c % 4]]),
    Operation("ellipsis", "f", has_rank(1), lambda c, x: x[..., None, c % x.shape[-1]]),
    Operation("gather", "fi", has_rank(1), lambda c, x, i: x[indices(i, x.shape[0])]
              if x.size * i.size <= MAX_SIZE else x[0]),
    Operation("mask_set", "f", always, lambda c, x: x.at[x > 0.2].set(jnp.mean(x))),
    Operation("at_set", "ffi", has_rank(1), lambda c, x, y, i: x.at[
        indices(i.reshape(-1)[0], x.shape[0])].set(jnp.mean(y))),
    Operation("at_add", "fi", has_rank(1), lambda c, x, i: x.at[
        indices(i, x.shape[0])].add(jnp.sin(x[0]))),
    Operation("at_mul", "f", has_rank(1), lambda c, x: x.at[
        c % x.shape[0], ...].multiply(jnp.mean(x))),
    Operation("at_max", "f", has_rank(1), lambda c, x: x.at[::2].max(jnp.mean(x))),
    Operation("dynamic_slice", "fi", has_rank(1), lambda c, x, i: lax.dynamic_slice_in_dim(
        x, i.reshape(-1)[0], 1 + c % x.shape[0], axis=0)),
    Operation("dynamic_update", "fi", has_rank(1), lambda c, x, i: lax.dynamic_update_slice_in_dim(
        x, jnp.sin(x[:1]) * 0.5, i.reshape(-1)[0], 0)),
    Operation("take", "fi", has_rank(1), lambda c, x, i: jnp.take(
        x, i.reshape(-1)[:2], axis=axis(x, c), mode=("clip", "wrap")[c % 2])),
    Operation("matmul", "ff", multiplies, lambda c, x, y: x @ y),
    Operation("outer", "ff", lambda x, y: x.size * y.size <= MAX_SIZE, lambda c, x, y:
              jnp.outer(x, y)),
    Operation("einsum", "f", is_square, lambda c, x: jnp.einsum(
        ("ij,jk->ki", "ii->i", "ij,ij->j", "ij,kj->ik")[c % 4], *([x] * (1 if c % 4 == 1 else 2)))),
    Operation("tensordot", "ff", lambda x, y: x.shape == y.shape and x.ndim >= 1,
              lambda c, x, y: jnp.tensordot(x, y, axes=x.ndim)),
    Operation("cholesky", "f", is_square, lambda c, x: jnp.linalg.cholesky(spd(x))),
    Operation("solve", "f", is_square, lambda c, x: jnp.linalg.solve(spd(x), x)),
    Operation("inv", "f", is_square, lambda c, x: jnp.linalg.inv(spd(x))),
    Operation("conv", "f", lambda x: x.ndim == 2 and min(x.shape) >= 3, conv),
    Operation("window", "f", lambda x: x.ndim == 1 and x.size >= 3, lambda c, x:
              lax.reduce_window(x, (0.0, -np.inf)[c % 2], (lax.add, lax.max)[c % 2], (2,), (1,),
                                ("SAME", "VALID")[c // 2 % 2])),
    Operation("interp", "f", lambda x: x.ndim == 1, lambda c, x: jnp.interp(
        jnp.sin(x), jnp.array([-2.0, 0.1, 2.0], x.dtype), jnp.cumsum(jnp.exp(x[:1])) *
        jnp.array([0.3, 1.0, -1.0], x.dtype))),
    Operation("median", "f", has_rank(1), lambda c, x: jnp.median(x, axis=axis(x, c))),
    Operation("complex", "ff", lambda x, y: x.shape == y.shape, lambda c, x, y:
              lax.complex(x, y)),
    Operation("complex_mul", "c", always, lambda c, z: z * (1.0 + 0.5j) + jnp.conj(z)),
    Operation("complex_exp", "c", always, lambda c, z: jnp.exp(0.3 * z)),
    Operation("complex_abs", "c", always, lambda c, z: jnp.abs(z + 3.0)),
    Operation("complex_parts", "c", always, lambda c, z: jnp.real(z) * jnp.imag(z)),
    Operation("complex_at", "c", has_rank(1), lambda c, z: z.at[0].multiply(1j)),
    Operation("fft", "c", has_rank(1), lambda c, z: jnp.fft.fft(z)),
    Operation("rfft", "f", lambda x: x.ndim >= 1 and x.shape[-1] > 1, lambda c, x:
              jnp.fft.rfft(x)),
    Operation("argmax", "f", always, lambda c, x: jnp.argmax(x).reshape(1)),
    Operation("argsort", "f", has_rank(1), lambda c, x: jnp.argsort(x.reshape(-1))[:3]),
    Operation("count", "f", always, lambda c, x: (x > 0.0).sum().reshape(1)),
    Operation("int_math", "i", always, lambda c, i: (i * 3 + 1) // 2 - (i % 2)),
    Operation("to_float", "i", always, lambda c, i: i.astype("float64") * 0.25),
]


def like(result: Any, x: Any) -> Any:
    """`result` in the shape of x, and of moderate size."""
    if result.shape == x.shape:
        return jnp.tanh(result)
    return x * 0.5 + jnp.tanh(result.mean())


def positive(x: Any) -> Any:
    return jnp.sum(x) > 0.1


def custom(fun: Callable[..., Any], x: Any, y: Any) -> Any:
    """A custom_jvp function whose rule is the true derivative."""
    @ft.custom_jvp
    def call(x, y):
        return fun(x, y)

    @call.defjvp
    def rule(primals, tangents):
        return ft.jvp(fun, primals, tangents)

    return call(x, y)


def named(fun: Callable[..., Any], x: Any, y: Any) -> Any:
    def call(a):
        b = fun(a, y)
        return like(b, a) + lax.psum(b, "p").mean() * 0.1 + lax.axis_index("p")

    return ft.vmap(call, axis_name="p")(jnp.stack([x, jnp.sin(x)]))[1] if x.size < 32 else fun(x, y)


def grow(fun: Callable[..., Any], x: Any, y: Any) -> Any:
    """A while loop whose number of steps depends on the data."""
    return lax.while_loop(lambda s: s[0] < 2.5, lambda s: (s[0] + 0.6 + s[0] ** 2 * 0.1,
                                                            like(fun(s[1], y), x)),
                          (jnp.sin(x).mean(), x))[1]


BLOCKS: dict[str, Callable[..., Any]] = {
    "jit": lambda f, x, y: ft.jit(f)(x, y),
    "inline": lambda f, x, y: ft.jit(f, inline=True)(x, y),
    "checkpoint": lambda f, x, y: ft.checkpoint(f)(x, y),
    "policy": lambda f, x, y: ft.checkpoint(
        f, policy=ft.checkpoint_policies.dots_saveable, prevent_cse=False)(x, y),
    "custom_jvp": custom,
    "vmap": lambda f, x, y: ft.vmap(f, in_axes=(-1, None), out_axes=-1)(x, y) if x.ndim else
    f(x, y),
    "chunks": lambda f, x, y: ft.vmap(lambda a: like(f(a, y), a), chunk_size=2)(
        jnp.stack([x, -x, x * 0.3])).sum(0),
    "named": named,
    "jvp": lambda f, x, y: jnp.tanh(ft.jvp(lambda a: f(a, y), (x,), (jnp.cos(x),))[1]),
    "grad": lambda f, x, y: jnp.tanh(ft.grad(lambda a: jnp.sin(f(a, y)).sum())(x)),
    "vjp": lambda f, x, y: jnp.tanh(ft.vjp(f, x, y)[1](f(x, y) * 0.5)[1]),
    "linearize": lambda f, x, y: jnp.tanh(ft.linearize(f, x, y)[1](y * 0.0 + x.mean(), y)
                                          if x.shape == y.shape else f(x, y)),
    "scan": lambda f, x, y: lax.scan(lambda c, a: (like(f(c, y * a), c), c.sum()), x,
                                     jnp.array([0.5, 1.0, -0.7], x.dtype))[0],
    "scan_ys": lambda f, x, y: lax.scan(
        lambda c, a: (c + jnp.sin(c), f(a, y) * c), jnp.float64(0.4),
        jnp.stack([x, jnp.cos(x)]), reverse=True)[1].mean(0),
    "fori": lambda f, x, y: lax.fori_loop(0, 3, lambda i, c: like(f(c, y + i), c), x),
    "dynamic_fori": lambda f, x, y: lax.fori_loop(
        0, 1 + jnp.argmax(y) % 3, lambda i, c: like(f(c, y), c), x),
    "while": grow,
    "cond": lambda f, x, y: lax.cond(positive(x), lambda a: like(f(a, y), x),
                                     lambda a: jnp.sin(a) * y.mean(), x),
    "switch": lambda f, x, y: lax.switch(
        jnp.argmax(y) % 3, [lambda a: like(f(a, y), x), lambda a: a * 2.0, lambda a: y.mean() * a],
        x),
    "map": lambda f, x, y: lax.map(lambda a: f(a, y), jnp.stack([x, x * 0.5])).sum(0),
}
BLOCK_NAMES = tuple(BLOCKS)
NEUTRAL = ("jit", "inline", "checkpoint", "policy", "custom_jvp")


def kind_of(x: Any) -> str:
    return "i" if dtypes.kind(x.dtype) in "iub" else dtypes.kind(x.dtype)


def operand(kind: str, index: int, values: list[Any]) -> Any:
    """The value of this kind that `index` picks, made of another where there is none."""
    pool = [v for v in values if kind_of(v) == kind]
    if pool:
        return pool[-1 - index % len(pool)]
    x = operand("f", index, values)
    return jnp.argsort(x.reshape(-1)) if kind == "i" else lax.complex(x, jnp.cos(x))


def apply_node(node: Node, values: list[Any]) -> Any:
    if node.body:
        x, y, closure = (operand("f", i, values) for i in node.operands)

        def body(a, b):
            result = run(node.body, [a, b, closure])
            return jnp.real(result).astype("float64")

        return bounded(BLOCKS[BLOCK_NAMES[node.pick % len(BLOCKS)]](body, x, y))
    fitting = []
    for operation in OPERATIONS:
        args = [operand(k, i, values) for k, i in zip(operation.kinds, node.operands)]
        if operation.fits(*args):
            fitting.append((operation, args))
    operation, args = fitting[node.pick % len(fitting)]
    return bounded(operation.apply(node.choice, *args))


def bounded(x: Any) -> Any:
    """Programs stay small, in size and in value."""
    if kind_of(x) == "f":
        x = jnp.where(jnp.abs(x) < 2.0, x, 2.0 * jnp.tanh(x))
    while x.size > MAX_SIZE:
        x = x[:x.shape[0] // 2 + 1] if x.shape[0] > 2 else x[0]
    return x


def run(program: tuple[Node, ...], inputs: list[Any]) -> Any:
    values = list(inputs)
    for node in program:
        values.append(apply_node(node, values))
    return values[-1]


def outputs(program: tuple[Node, ...], inputs: list[Any]) -> list[Any]:
    """The last value of each kind."""
    values = list(inputs)
    for node in program:
        values.append(apply_node(node, values))
    return [pool[-1] for kind in "fci" if (pool := [v for v in values if kind_of(v) == kind])]


def explain(program: tuple[Node, ...], inputs: list[Any], depth: int = 0) -> list[str]:
    """What the nodes of a program stand for: to read a counterexample."""
    values, lines = list(inputs), []
    for node in program:
        if node.body:
            x, y, closure = (operand("f", i, values) for i in node.operands)
            lines.append("  " * depth + f"{BLOCK_NAMES[node.pick % len(BLOCKS)]} of {x.shape} "
                         f"{y.shape}")
            lines += explain(node.body, [x, y, closure], depth + 1)
        else:
            fitting = []
            for operation in OPERATIONS:
                args = [operand(k, i, values) for k, i in zip(operation.kinds, node.operands)]
                if operation.fits(*args):
                    fitting.append((operation, args))
            operation, args = fitting[node.pick % len(fitting)]
            lines.append("  " * depth + f"{operation.name} of {[a.shape for a in args]} "
                         f"choice {node.choice}")
        values.append(apply_node(node, values))
    return lines


SHAPES = [(3,), (2, 3), (3, 3), (), (4,), (2, 1, 3), (1,)]


@st.composite
def nodes(draw: Any, depth: int) -> Node:
    pick, choice = draw(st.integers(0, 999)), draw(st.integers(0, 63))
    picked = draw(st.tuples(*[st.integers(0, 5)] * 3))
    body: tuple[Node, ...] = ()
    if depth and draw(st.integers(0, 3)) == 0:
        body = draw(programs(depth - 1, 1, 3))
    return Node(pick, picked, choice, body)


def programs(depth: int = 2, shortest: int = 3, longest: int = 12) -> Any:
    return st.lists(nodes(depth), min_size=shortest, max_size=longest).map(tuple)


@st.composite
def inputs(draw: Any) -> list[np.ndarray[Any, Any]]:
    """Two or three float64 arrays, perhaps a complex one, an int32 one in front."""
    rng = np.random.default_rng(draw(st.integers(0, 10 ** 6)))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    arrays = [np.asarray(rng.uniform(-1.5, 1.5, s)) for s in shapes]
    if draw(st.booleans()):
        shape = draw(st.sampled_from(SHAPES[:3]))
        arrays.append(rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape))
    if draw(st.booleans()):
        arrays.insert(0, rng.integers(0, 5, 2).astype(np.int32))
    return arrays
