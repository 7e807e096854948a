"""Programs that exported C is judged by, on every machine that it is built for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as jnp

RNG = np.random.default_rng(0)


def array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


@dataclass(frozen=True)
class Program:
    """A function and its arguments; `rtol` and `atol` are for floats, integers are exact."""

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    rtol: float
    atol: float = 0.0

    def __str__(self) -> str:
        return self.name

    def expected(self) -> list[np.ndarray]:
        """What Python computes: the leaves of the results."""
        return [np.asarray(x) for x in ft.tree.leaves(ft.jit(self.fun)(*self.args))]

    def inputs(self) -> list[np.ndarray]:
        return [np.asarray(x) for x in ft.tree.leaves(self.args)]

    def check(self, outs: list[np.ndarray], expected: list[np.ndarray]) -> None:
        for out, right in zip(outs, expected, strict=True):
            if out.dtype.kind in "biu":
                np.testing.assert_array_equal(out, right)
                continue
            narrow = out.dtype.itemsize == 2
            wide = right.astype(np.float64) if narrow else right
            atol = max(self.atol, 0.01 * abs(wide).max()) if narrow else self.atol
            np.testing.assert_allclose(out.astype(wide.dtype), wide,
                                       rtol=0.01 if narrow else self.rtol, atol=atol)


def library_functions() -> Program:
    def fun(x, y, i):
        order = jnp.lexsort((jnp.round(x[0]), jnp.round(y[:, 0])))
        return [x @ y, jnp.sort(x), jnp.argsort(x, axis=0), ft.lax.top_k(x, 5), order,
                jnp.cumsum(x, 1), jnp.cumprod(x, 0), ft.lax.cummax(i, 1, reverse=True),
                ft.lax.cumlogsumexp(x, 1), i @ i.T, jnp.sort(i, axis=0)]

    x = array(70, 300)
    x[3, 4:9] = np.nan, -0.0, 0.0, np.inf, -np.inf
    i = RNG.integers(-100, 100, (70, 300), dtype=np.int32)
    return Program("library", fun, (x, array(300, 530), i), 1e-4, 1e-4)


def products() -> Program:
    names = ("float64", "float16", "bfloat16", "int8", "int64", "uint16")
    given = [(jnp.asarray(8 * array(33, 47)).astype(n), jnp.asarray(8 * array(47, 21)).astype(n))
             for n in names]
    return Program("products", lambda given: [a @ b for a, b in given], (given,), 1e-12, 1e-9)


def convolutions() -> Program:
    def fun(x, w):
        conv = ft.lax.conv_general_dilated
        return [conv(x, w, (2, 1), "SAME", feature_group_count=2),
                conv(x, w, (1, 1), ((2, 1), (0, 3)), (2, 3), (1, 2), feature_group_count=2),
                conv(x[:, :2, 0], w[:, :, 0], (1,), "VALID")]

    return Program("convolutions", fun, (array(3, 4, 9, 8), array(6, 2, 3, 2)), 1e-4, 1e-5)


def loops_and_branches() -> Program:
    def fun(x):
        last, ys = ft.lax.scan(lambda h, row: (jnp.tanh(h @ x.T @ x / 9 + row), h.sum()), x[0], x)
        n = ft.lax.while_loop(lambda s: (s * s).sum() < 100, lambda s: 1.5 * s, last)
        return ft.lax.cond(ys[0] > 0, jnp.sin, jnp.cos, n)

    return Program("loops", fun, (array(5, 4),), 1e-5)


def linear_algebra(dtype: Any) -> Program:
    names = ("lower", "transpose_a", "left_side", "unit_diagonal")
    triangles = [dict(zip(names, flags, strict=True))
                 for flags in itertools.product((True, False), repeat=4)]

    def fun(a, b):
        positive = a @ a.mT + 5 * jnp.eye(6, dtype=dtype)
        triangular = ft.lax.linalg.triangular_solve
        large = jnp.tile(a[0], (9, 9))[:50, :50] + 9 * jnp.eye(50, dtype=dtype)
        return [jnp.linalg.cholesky(positive), jnp.linalg.solve(a, b), jnp.linalg.inv(a[1]),
                jnp.linalg.det(a), jnp.linalg.slogdet(a), ft.lax.linalg.lu(b),
                ft.lax.linalg.lu(b.mT), jnp.linalg.solve(large, large[:, :3]),
                jnp.linalg.cholesky(-positive), jnp.linalg.det(a * 0),
                *[triangular(positive, b if t["left_side"] else b.mT, **t) for t in triangles]]

    single = dtype is np.float32
    return Program(f"linalg_{np.dtype(dtype).name}", fun,
                   (array(3, 6, 6, dtype=dtype), array(3, 6, 4, dtype=dtype)),
                   1e-3 if single else 1e-9, 1e-4 if single else 1e-11)


def fourier_transforms(dtype: Any) -> Program:
    def fun(x, y, z):
        return [jnp.fft.fft(x), jnp.fft.ifft(x), jnp.fft.irfft(x), jnp.fft.irfft(x, 57),
                jnp.fft.fft2(z), jnp.fft.ifftn(z), jnp.fft.irfftn(z), jnp.fft.rfft(y),
                jnp.fft.rfftn(y), jnp.fft.irfftn(jnp.fft.rfftn(y), y.shape)]

    x = (array(5, 29) + 1j * array(5, 29)).astype(dtype)
    z = (array(2, 12, 7) + 1j * array(2, 12, 7)).astype(dtype)
    y = array(3, 5, 14, dtype=dtype(0).real.dtype)
    return Program(f"fourier_{np.dtype(dtype).name}", fun, (x, y, z), 1e-4,
                   1e-4 if dtype is np.complex64 else 1e-12)


def complex_arithmetic(dtype: Any) -> Program:
    def fun(z, x):
        w = jnp.exp(1j * x) * z + jnp.sqrt(z)
        return w, (w @ z.T), jnp.abs(w).sum(0), jnp.where(w.real > 0, w, 1 / z)

    z = (array(3, 7) + 1j * array(3, 7)).astype(dtype)
    return Program(f"complex_{np.dtype(dtype).name}", fun,
                   (z, array(7, dtype=dtype(0).real.dtype)), 1e-4, 1e-5)


def gradients() -> Program:
    def loss(p, x):
        return (ft.nn.softmax(ft.nn.gelu(x @ p["w"]) + p["b"]) ** 2).sum()

    return Program("gradients", ft.value_and_grad(loss),
                   ({"w": array(6, 5), "b": array(5)}, array(4, 6)), 1e-4, 1e-6)


def large_constants() -> Program:
    weights = array(600, 600)
    return Program("large_constants", lambda x: x @ jnp.asarray(weights), (array(2, 600),),
                   1e-4, 1e-4)


def lanes() -> Program:
    """A loop of lanes that end at different times, with memory of their own, and random numbers."""
    def walk(x):
        def step(s):
            k, y, seen = s
            y = y * y - 0.7 + 0.1 * jnp.sin(3 * y)
            return k + 1, y, seen.at[k % 5].add(y)
        k, y, seen = ft.lax.while_loop(lambda s: (s[0] < 40) & (abs(s[1]) < 1.5), step,
                                       (0, x, jnp.zeros(5)))
        return k, y, seen

    def fun(x):
        return ft.vmap(walk)(x), ft.random.normal(ft.random.key(3), (50,))

    return Program("lanes", fun, (2 * array(133),), 1e-5, 1e-5)


PROGRAMS = [library_functions(), products(), convolutions(), loops_and_branches(),
            *map(linear_algebra, (np.float32, np.float64)),
            *map(fourier_transforms, (np.complex64, np.complex128)),
            *map(complex_arithmetic, (np.complex64, np.complex128)), gradients(),
            large_constants(), lanes()]
