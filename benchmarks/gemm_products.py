"""Makers of matrix products for gemm.py, and more of them: a few rows, narrow types, odd sizes.

`HELD_OUT` was written down with `MORE`, before any of either was measured; what was changed for
speed was chosen by `MORE` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch
from bounds import SUBJECT

import functrans as ft
from tests.runtime.library_calls import gemm_call

Calls = dict[str, Callable[[], Any]]
NDArray = np.ndarray[Any, Any]


def normal(*shape: int, dtype: Any = np.float32) -> NDArray:
    """Begins with a line of the cache, as arrays of all libraries do but NumPy's own."""
    base = np.empty(int(np.prod(shape)) * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -base.ctypes.data % 64
    x = base[start:start + base.size - 64].view(dtype).reshape(shape)
    x[...] = np.random.default_rng(0).standard_normal(shape)
    return x


def to_torch(x: NDArray) -> Any:
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.view(np.uint16).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def product(m: int, n: int, k: int, batch: tuple[int, ...] = (), dtype: Any = np.float32,
            turned: str = "") -> tuple[float, Calls]:
    """`turned` names the operands, and the result, that are transposed in memory."""
    a, b = normal(*batch, m, k, dtype=dtype), normal(*batch, k, n, dtype=dtype)
    if "a" in turned:
        a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if "b" in turned:
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    c = np.empty((*batch, m, n), dtype)
    if "c" in turned:
        c = np.empty((*batch, n, m), dtype).swapaxes(-1, -2)
    x, y, z = to_torch(a), to_torch(b), to_torch(c)
    calls: Calls = {SUBJECT: gemm_call(a, b, c), "torch": lambda: torch.matmul(x, y, out=z)}
    if dtype in (np.float32, np.float64):
        calls["numpy"] = lambda: np.matmul(a, b, out=c)
    if dtype != np.float64:
        def turn(name: str, x: Any) -> Any:
            return x.swapaxes(-1, -2) if name in turned else x

        function = jax.jit(lambda p, q: turn("c", turn("a", p) @ turn("b", q)))
        p, q = jnp.asarray(turn("a", a)), jnp.asarray(turn("b", b))
        calls["jax"] = lambda: function(p, q).block_until_ready()
    return 2e-9 * m * n * k * int(np.prod(batch)), calls


def integers(m: int, n: int, k: int, turned: str = "") -> tuple[float, Calls]:
    """int8 with sums of int32; the second operand may be transposed in memory."""
    a, b = (np.random.default_rng(0).integers(-100, 100, shape).astype(np.int8)
            for shape in ((m, k), (n, k) if turned else (k, n)))
    p, q = jnp.asarray(a), jnp.asarray(b)
    b = b.T if turned else b
    function = jax.jit(lambda p, q: jax.lax.dot(p, q.T if turned else q,
                                                preferred_element_type=jnp.int32))
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    return 2e-9 * m * n * k, {SUBJECT: gemm_call(a, b, np.empty((m, n), np.int32)),
                              "torch": lambda: torch._int_mm(x, y),
                              "jax": lambda: function(p, q).block_until_ready()}


def dense(m: int, n: int, k: int, dtype: Any) -> tuple[float, Calls]:
    """gelu(x @ w + b), each as its library's compiler makes it."""
    x, w, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype), normal(n, dtype=dtype)
    w = (w / k ** 0.5).astype(dtype)
    ours = ft.jit(lambda x, w, b: ft.nn.gelu(x @ w + b))
    theirs = jax.jit(lambda x, w, b: jax.nn.gelu(x @ w + b))
    mine, jaxs = [ft.numpy.asarray(z) for z in (x, w, b)], [jnp.asarray(z) for z in (x, w, b)]
    tx, tw, tb = to_torch(x), to_torch(np.ascontiguousarray(w.T)), to_torch(b)

    def torchs() -> Any:
        with torch.inference_mode():
            return torch.nn.functional.gelu(torch.nn.functional.linear(tx, tw, tb),
                                            approximate="tanh")

    return 2e-9 * m * n * k, {SUBJECT: lambda: ours(*mine).block_until_ready(), "torch": torchs,
                              "jax": lambda: theirs(*jaxs).block_until_ready()}


half, single, double = ml_dtypes.bfloat16, np.float32, np.float64
Cases = dict[str, Callable[[], tuple[float, Calls]]]
MORE: Cases = {
    "1024 x 4096 x 512 bfloat16 a.T": lambda: product(1024, 4096, 512, dtype=half, turned="a"),
    **{f"{m} x 4096 x 4096 bfloat16": lambda m=m: product(m, 4096, 4096, dtype=half)
       for m in (1, 8, 32)},
    "4 x 4096 x 1024 bfloat16 b.T": lambda: product(4, 4096, 1024, dtype=half, turned="b"),
    "16 x 11008 x 4096 bfloat16 b.T": lambda: product(16, 11008, 4096, dtype=half, turned="b"),
    "64 x 64^3 bfloat16": lambda: product(64, 64, 64, (64,), dtype=half),
    "1000x777x555 bfloat16": lambda: product(1000, 777, 555, dtype=half),
    "1024^3 float16": lambda: product(1024, 1024, 1024, dtype=np.float16),
    "8 x 4096 x 4096 float16": lambda: product(8, 4096, 4096, dtype=np.float16),
    "8 x 4096 x 4096 int8": lambda: integers(8, 4096, 4096),
    "1000x777x555 int8": lambda: integers(1000, 777, 555),
    "vector 4096 x 4096 float64": lambda: product(1, 4096, 4096, dtype=double),
    "vector 4096 x 4096 float64 b.T": lambda: product(1, 4096, 4096, dtype=double, turned="b"),
    "200000 x 16 x 16": lambda: product(200000, 16, 16),
    "16 x 16 x 200000 a.T": lambda: product(16, 16, 200000, turned="a"),
    "1024 x 1024 x 8": lambda: product(1024, 1024, 8),
    "512 x 48^3": lambda: product(48, 48, 48, (512,)),
    "1024^3 c.T": lambda: product(1024, 1024, 1024, turned="c"),
    "gelu(x @ w + b) 8 x 1024 x 4096 bfloat16": lambda: dense(8, 4096, 1024, half),
}
HELD_OUT: Cases = {
    "768 x 3072 x 2048 bfloat16 a.T": lambda: product(768, 3072, 2048, dtype=half, turned="a"),
    "2 x 5120 x 5120 bfloat16": lambda: product(2, 5120, 5120, dtype=half),
    "24 x 3000 x 2000 bfloat16 b.T": lambda: product(24, 3000, 2000, dtype=half, turned="b"),
    "512 x 1536 x 640 float16 a.T": lambda: product(512, 1536, 640, dtype=np.float16, turned="a"),
    "16 x 2000 x 3000 int8 b.T": lambda: integers(16, 2000, 3000, "b"),
    "300 of 20 x 36 x 28": lambda: product(20, 36, 28, (300,)),
    "1500 x 13 x 1500 float64": lambda: product(1500, 13, 1500, dtype=double),
    "5000 x 3000 vector": lambda: product(5000, 1, 3000),
    "900x700x300 c.T": lambda: product(900, 700, 300, turned="c"),
    "64 of 128 x 128 x 80 bfloat16 b.T":
        lambda: product(128, 128, 80, (64,), dtype=half, turned="b"),
    "gelu(x @ w + b) 128 x 768 x 768 bfloat16": lambda: dense(128, 768, 768, half),
}
