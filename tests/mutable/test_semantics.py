"""Small functions of everything that writes, beside NumPy: eager, compiled and differentiated."""

import functools
import math
import operator
from math import sqrt

import numpy as np
import pytest
from numpy import add, zeros
from numpy import linalg as la

import functrans as ft
import functrans.numpy as jnp

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
I = np.array([2, 0, 2])
SQUARES = np.vectorize(lambda v: v * v)
TABLE = np.array([10.0, 20.0, 30.0])
counter = 0


def aliases(x):
    out = np.zeros(4)
    other, part = out, out[1:3]
    part += 1
    other *= 3
    part[...] = part + x[0, 0]
    s = out[1]  # a number: the array may change
    t = s
    s += 5
    out[1] = 7
    return out, s, t


def zero_dimensional(x):
    a = np.zeros(())
    b = a
    a += x[0, 0]
    b[...] = b * 2
    c = np.array(x[0, 1])
    c[()] = 3
    view = np.zeros(3)
    view[1, ...] += 2
    return a, b, c, view, a + 1


def outs(x):
    out = np.empty((2, 3))
    np.exp(x, out=out)
    np.add(out, 1, out)
    np.sum(x, axis=0, out=out[0])
    np.maximum(out, x, out=out, where=x > 0)
    q, r = np.empty((2, 3)), np.empty((2, 3))
    np.divmod(x, 2.0, out=(q, r))
    np.cumsum(x[1], out=r[0])
    x.mean(axis=1, out=q[:, 1])
    np.matmul(x, x.T, out=out[:, :2])
    return out, q, r


def at(x):
    out = np.zeros(3)
    np.add.at(out, I, x[0])
    np.subtract.at(out, [0, 0], 1.5)
    np.maximum.at(out, I, x[1])
    np.multiply.at(out, slice(1, 3), 2.0)
    counts = np.zeros((2, 3), dtype=int)
    np.add.at(counts, ([0, 0, 1], [1, 1, 2]), 1)
    np.add.at(counts.T, (slice(None), 0), 5)
    return out, counts


def others(x):
    out = np.full((3, 3), 7.0)
    np.fill_diagonal(out, x[0, 0])
    np.copyto(out[0], x[1], where=x[1] > 0)
    np.put(out, [1, 5], [x[0, 1], 2])
    np.putmask(out, out > 6, x[0, 2])
    line = np.arange(6.0)
    np.place(line, line % 2 == 0, x[0, :2])
    np.put_along_axis(out, np.array([[0], [1], [2]]), -1.0, axis=1)
    line[1:4].fill(9)
    line[::-1].sort()
    out.flat[::4] = line[:3]
    out.flat[2] = 100
    return out, line, out.argmax(axis=1)


def dtypes(x):
    whole = np.zeros(3, dtype=int)
    whole[:] = x[0] * 1.5  # cast as an assignment does
    small = x.astype(np.float32)
    small += x  # computed in float64, stored in float32
    flags = np.zeros(3, bool)
    flags[1:] = whole[1:]
    flags |= whole > 2
    z = np.zeros(3, dtype=complex)
    z.real = x[0]
    z.imag[1:] = 2
    z.imag += 1
    bits = np.zeros(2, np.float32)
    bits.view(np.int32)[0] = 0x3F800000
    return whole, small, flags, z, bits, np.arange(3), np.ones(2) / 2, np.sqrt(2.0) * small


def masks(x):
    out = x.copy()
    m = out > 0
    out[m] *= 2
    out[~m] = 0.5
    other = np.zeros_like(out)
    other[m] = np.log(out[m])
    row = np.array([True, False])
    out[row] += 1
    out[0, out[0] > 2] -= 3
    columns = out.sum(axis=0) > 1
    out[:, columns] *= 2
    out[..., columns] += 1
    out[~m, ...] = -1
    return out, other, out[m].sum()


def gathered(x):
    out = np.zeros(3)
    out[I] = x[0]  # the last one stays
    out[I] += 1  # and counts once
    out[[0, 1]], out[-1] = x[1, :2], x[1, -1]
    copy = out[I]
    copy[:] = 0
    i = np.argmax(x[1])
    out[i] += 10
    return out, copy, TABLE[i]


def layouts(x):
    a = x.T.copy(order="F")
    flat = a.ravel()  # a copy, as the memory is in the other order
    flat += 100
    turned = (x.T + 1).reshape(-1)
    turned[0] = 50
    whole = np.zeros((2, 3), order="F")
    whole.T.reshape(-1)[1] = 4
    whole.reshape(-1)[0] = 9
    x = np.ascontiguousarray(x.T)
    x.reshape(2, 3)[0] = 1
    x.shape = (6,)
    x[-1] = 8
    return a, flat, turned, whole, x


def stacked(x):
    rows = [np.zeros(3) for _ in range(2)]
    for row, given in zip(rows, x, strict=True):
        row[:] = given
    both = np.array(rows)
    rows[0][0] = 99
    joined = np.concatenate([both, x], axis=1)
    joined[:, 0], joined[:, 1] = joined[:, 1].copy(), joined[:, 0].copy()
    a, b = np.split(joined, 2, axis=1)
    a -= b
    return both, joined, {"rows": tuple(rows)}


def functions(x):
    out = np.apply_along_axis(doubled, 1, x)
    with np.errstate(all="ignore"):
        out[0] += np.vectorize(lambda v: v * v)(x[0])
    for index, value in np.ndenumerate(x):
        out[index] -= value
    out[1] += np.einsum("i,i", x[0], x[1])
    grid = np.meshgrid(np.linspace(0, 1, 3), np.arange(2.0))[0]
    grid[0] = x[0]
    solved = la.solve(np.eye(2) * 2, x[:, 0])
    solved[0] += math.sqrt(x[1, 1]) + math.floor(x[0, 2])
    return out, grid, solved, np.r_[x[0], 1.0], isinstance(out, np.ndarray), len(out), [*out[0]]


def doubled(row):
    row = row.copy()
    row[0] = 0
    return add(row, row)


def names(x, scale=TABLE, fn=np.negative):
    import numpy as other  # noqa: PLC0415  (it is what is tested)
    from numpy import ones_like  # noqa: PLC0415

    class Rows:
        start = np.zeros(3)

        def filled(self):
            self.start[:] = np.float64(2.0)
            return self.start

    def inner(n):
        return zeros(n) if n < 2 else inner(n - 1)

    global counter
    counter += 1
    made = [other.zeros(2), ones_like(x), Rows().filled(), inner(3), zeros(2)]
    for m in made:
        m += counter
    part = functools.partial(np.full, 2)(1.0)
    part[0] = operator.add(x[0, 0], sqrt(x[1, 1])) + SQUARES(x)[1, 1]
    return made, part, fn(scale)


def numbers(x):
    out = np.zeros(3, dtype=float)
    out[0] = float(x[0, 0]) * 2
    out[1] = np.float64(x[0, 1]) + float("1.5") + int(2.7)
    whole = np.asarray(x[1], dtype=np.float32)
    whole += float(x[0, 2])
    assert isinstance(1.0, float) and isinstance(np.float64(1), np.float64)
    assert out.dtype == np.float64 and out.dtype == float
    count = int(np.floor(x[1, 1]))
    return out, whole, np.complex128(x[0, 0]) * complex(0, 1), np.int32(x[1]), count * out


def types(x):
    class Length(float):
        pass

    assert Length(2.0) == 2.0 and issubclass(bool, int) and isinstance(2, (int, float))
    assert np.issubdtype(x.dtype, np.float64) and np.dtype(float) == np.float64
    assert np.finfo(float).eps == np.finfo(x.dtype).eps and np.iinfo(int).max > 2**62
    assert [*map(float, ["1", "2"])] == [1.0, 2.0] and {float: 1}[float] == 1
    return (x.astype(int), np.array([1, 2], dtype=np.float32), np.arange(3, dtype=float),
            np.full(2, 1, dtype=int), np.empty((2,), dtype=complex) * 0, np.zeros(2, np.bool_),
            np.ones(2, "f4"), np.float32(2) * x, x.sum(dtype=np.float32), np.mean(x, dtype=float))


class Moments:
    def __init__(self, n):
        self.first = np.zeros(n)

    def seen(self, x):
        self.first[:2] += x
        return self

    @property
    def total(self):
        return np.sum(self.first)

    @staticmethod
    def of(n):
        return TwoMoments(n)


@ft.tree_util.register_pytree_node_class
class TwoMoments(Moments):
    def __init__(self, n):
        super().__init__(n)
        self.second = np.ones(n)

    def seen(self, x):
        super().seen(x)
        self.second[1:] *= x
        return self

    @functools.cached_property
    def both(self):
        return np.concatenate([self.first, self.second])

    def tree_flatten(self):
        return (self.first, self.second), None

    @classmethod
    def tree_unflatten(cls, _, children):
        new = cls.__new__(cls)
        new.first, new.second = children
        return new


def classes(x):
    made = [TwoMoments(3).seen(x[0, :2]), Moments.of(3).seen(x[1, :2])]
    assert all(type(m).__name__ == "TwoMoments" and isinstance(m, Moments) for m in made)
    return [m.both * m.total for m in made], made


TABLE_OF = [aliases, zero_dimensional, outs, at, others, dtypes, masks, gathered, layouts, stacked,
            functions, numbers, types, classes]


def same(got, wanted):
    got, wanted = ft.tree.leaves(got), ft.tree.leaves(wanted)
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        if isinstance(w, (bool, int)):
            assert g == w
            continue
        if isinstance(w, (np.ndarray, np.generic)):
            assert isinstance(g, ft.Array) and g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6 if w.dtype == "f4" else 1e-13)


@pytest.mark.parametrize("f", TABLE_OF, ids=lambda f: f.__name__)
def test_beside_numpy(f):
    pure = ft.numpy_code(f)
    wanted = f(X.copy())
    same(pure(X), wanted)
    if f is not functions:  # returns a Python bool and an int
        same(ft.jit(pure)(X), wanted)
        lanes = ft.jit(ft.vmap(pure))(np.stack([X, X]))
        same(ft.tree.map(lambda r: r[1], lanes), wanted)


@pytest.mark.parametrize("f", [aliases, outs, others, masks, gathered, stacked, numbers],
                         ids=lambda f: f.__name__)
def test_derivatives(f):
    def total(x):
        return sum(((i + 1) * v * np.arange(1.0, 1 + v.size).reshape(v.shape)).sum()
                   for i, v in enumerate(ft.tree.leaves(pure(x))) if v.dtype == np.float64)

    pure = ft.numpy_code(f)
    ft.test_util.check_grads(total, (X + 0.01,), order=1, modes=("fwd", "rev"))


def test_names_are_found_wherever_they_are():
    global counter
    counter = 0
    wanted = names(X)
    counter = 0
    got = ft.numpy_code(names)(X)
    same(got, wanted)
    assert counter == 1  # what the function assigns to a global is assigned
    assert TABLE.tolist() == [10, 20, 30]


def test_traced_index():
    def swap(x, i, j):
        x = x.copy()
        row = x[i]
        row[0] = 5
        x[i], x[j] = x[j].copy(), x[i].copy()
        x[i, 1] += 1
        x[[i, j], 2] = -1
        return x

    pure = ft.numpy_code(swap)
    wanted = swap(X, 0, 1)
    same(ft.jit(pure)(X, 0, 1), wanted)
    same(ft.vmap(pure, in_axes=(None, 0, 0))(X, np.array([0, 0]), np.array([1, 1]))[1], wanted)


@pytest.mark.parametrize("n", [5, 100])
def test_the_last_of_repeated_traced_places_stays(n):
    i = np.random.default_rng(0).integers(-6, 6, n)
    v = np.arange(float(n))

    def f(i, v):
        out = np.full((6, 2), -1.0)
        out[i, 1] = v
        return out

    same(ft.jit(ft.numpy_code(f))(i, v), f(i, v))
    gradient = ft.grad(lambda v: ft.jit(ft.numpy_code(f))(i, v).sum())(v)
    assert gradient.sum() == len(np.unique(i % 6))


def test_symbolic_sizes():
    def f(x):
        out = np.zeros(x.shape[0])
        out[1:] = x[:-1]
        out[0] = 7
        column = out.reshape(-1, 1)
        column += 1
        return out, column.T

    pure = ft.jit(ft.numpy_code(f), dynamic_shapes={"x": {0: "N"}})
    for n in (3, 5):
        same(pure(np.arange(float(n))), f(np.arange(float(n))))
    assert len(ft.explain_retrace(pure)) == 1


def test_array_api_namespace():
    def f(x):
        xp = x.__array_namespace__()
        out = xp.zeros(3, dtype=xp.float64)
        out[0] = xp.sum(x)
        assert xp.sum(x).__array_namespace__() is xp  # of numbers, too
        return xp.concat([out, xp.asarray(x, copy=True)[0]])

    assert ft.numpy_code(f)(X).tolist() == [5.5, 0, 0, 1, -2, 3]
    assert jnp.ones(2).__array_namespace__() is jnp


def test_transforms_inside_and_nested_calls():
    @ft.numpy_code
    def fill(out, v):
        out[:] = v
        return out

    def f(x):
        out = np.zeros(3)
        same_array = fill(out, x[0])
        same_array[0] += 1
        slope = ft.grad(lambda v: (v * out).sum())(x[1])
        pull = ft.vjp(lambda v: v * out, x[0])[1]
        out[:] = 0  # what was recorded has the values of then
        rows = ft.vmap(ft.numpy_code(lambda v: fill(np.zeros(3), v)))(x)
        jitted = ft.jit(lambda v: v + 1)(out)
        doubled = ft.lax.fori_loop(0, 2, lambda i, v: v * 2 + out, np.ones(3))
        return slope, pull(np.ones(3))[0], rows, jitted, doubled, jnp.sum(out) + out

    first = X[0] + [1, 0, 0]
    same(ft.numpy_code(f)(X), (first, first, X, np.ones(3), 4 * np.ones(3), np.zeros(3)))


def test_methods_partials_and_trees():
    class Solver:
        step = 0.5

        @ft.numpy_code
        def run(self, tree):
            out = np.zeros(2)
            out += self.step * tree["a"][0]
            return {"out": out}

    class Plain:
        def run(self, x):
            out = np.zeros(2)
            out[0] = x[0]
            return out

    assert ft.numpy_code(Plain().run)(X[0]).tolist() == [1, 0]
    x = jnp.asarray(X)
    assert Solver.run(Solver(), {"a": (x[0, :2],)})["out"].tolist() == [0.5, -1]
    assert ft.numpy_code(functools.partial(prefixed, 2))(X[0]).tolist() == [1, 1, -2, 3]
    assert ft.numpy_code(copy_args=True)(overwritten)(X[0]).tolist() == [9, -2, 3]
    assert X[0, 0] == 1


def prefixed(n, x):
    out = np.ones(n + 2)
    out[1:] = x
    return out


def overwritten(x):
    x[0] = 9
    return x


def test_a_write_compiles_to_an_update_in_place():
    def f(x):
        out = np.zeros(1000)
        for i in range(20):
            out[i * 3] = x[i] * 2
        return out

    compiled = ft.jit(ft.numpy_code(f)).lower(np.ones(20)).compile()
    assert compiled.memory_analysis()["temporaries"] < 8000  # not one array for each write
