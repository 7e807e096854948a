"""What is computed from gradients of samples: norms, clipped means, variances, Gram matrices.

A consumer is a function of the gradients that some spelling gives, with what its roundings are
measured by: a power of the norms of these gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, nn, tree
from tests.per_sample.networks import Problem, constant

Array = Any
Tree = Any
BOUND = 0.4  # of clipped gradients: some are above it, some below


# how the gradients of single samples are spelled: (loss, params, xs, ys) to a tree of [B, ...]

def aux(loss: Any, params: Tree, xs: Array, ys: Array) -> Tree:
    return ft.vmap(ft.grad(lambda w, x, y: (loss(w, x, y), x), has_aux=True),
                   (None, 0, 0))(params, xs, ys)[0]


def repeated(loss: Any, params: Tree, xs: Array, ys: Array) -> Tree:
    """The gradient of the sum of all losses, each with parameters of its own."""
    many = tree.map(lambda w: jnp.broadcast_to(w, (xs.shape[0], *w.shape)), params)
    return ft.grad(lambda ws: ft.vmap(loss)(ws, xs, ys).sum())(many)


def pulled(loss: Any, params: Tree, xs: Array, ys: Array) -> Tree:
    def one(x: Array, y: Array) -> Tree:
        value, pull = ft.vjp(lambda w: loss(w, x, y), params)
        return pull(jnp.ones_like(value))[0]
    return ft.vmap(one)(xs, ys)


def mapped_last(loss: Any, params: Tree, xs: Array, ys: Array) -> Tree:
    g = ft.vmap(ft.grad(loss), (None, -1, -1), -1)(
        params, jnp.moveaxis(xs, 0, -1), jnp.moveaxis(ys, 0, -1))
    return tree.map(lambda a: jnp.moveaxis(a, -1, 0), g)


SPELLINGS: dict[str, Callable[..., Tree]] = {
    "vmap": lambda loss, w, xs, ys: ft.vmap(ft.grad(loss), (None, 0, 0))(w, xs, ys),
    "closure": lambda loss, w, xs, ys: ft.vmap(lambda x, y: ft.grad(loss)(w, x, y))(xs, ys),
    "value": lambda loss, w, xs, ys: ft.vmap(ft.value_and_grad(loss), (None, 0, 0))(w, xs, ys)[1],
    "jit": lambda loss, w, xs, ys: ft.vmap(ft.jit(ft.grad(loss)), (None, 0, 0))(w, xs, ys),
    "jacrev": lambda loss, w, xs, ys: ft.jacrev(
        lambda w: ft.vmap(loss, (None, 0, 0))(w, xs, ys))(w),
    "checkpoint": lambda loss, w, xs, ys: ft.vmap(ft.grad(ft.checkpoint(loss)), (None, 0, 0))(
        w, xs, ys),
    "chunks": lambda loss, w, xs, ys: ft.vmap(ft.grad(loss), (None, 0, 0), chunk_size=2)(
        w, xs, ys),
    "loop": lambda loss, w, xs, ys: tree.map(lambda *gs: jnp.stack(gs), *[
        ft.grad(loss)(w, x, y) for x, y in zip(xs, ys)]),
    "scan": lambda loss, w, xs, ys: lax.map(lambda s: ft.grad(loss)(w, *s), (xs, ys)),
    "aux": aux, "repeated": repeated, "pulled": pulled, "mapped_last": mapped_last,
}


@dataclass(frozen=True)
class Samples:
    """The gradients of the samples of a batch, in one spelling."""

    problem: Problem
    spelling: str

    def grads(self, params: Tree, xs: Array, ys: Array) -> Tree:
        return SPELLINGS[self.spelling](self.problem.loss, params, xs, ys)

    def each(self, fun: Callable[[Tree], Tree], params: Tree, xs: Array, ys: Array) -> Tree:
        """`fun` of the gradient of one sample, in the function that is mapped."""
        chunk = 2 if self.spelling == "chunks" else None
        return ft.vmap(lambda x, y: fun(ft.grad(self.problem.loss)(params, x, y)),
                       chunk_size=chunk)(xs, ys)


def rows(g: Tree) -> Array:
    """All gradients as a matrix, a sample per row."""
    return jnp.concatenate([a.reshape(a.shape[0], -1) for a in tree.leaves(g)], axis=1)


def by_leaf(fun: Callable[..., Array]) -> Callable[..., Array]:
    """The sum over leaves."""
    return lambda *trees: sum(fun(*leaves) for leaves in zip(*map(tree.leaves, trees)))


def directions(g: Tree) -> Tree:
    """Fixed numbers like one of the gradients."""
    return tree.map(lambda a: constant(a, *a.shape[1:]), g)


def spread(s: Array, a: Array) -> Array:
    return s.reshape(-1, *[1] * (a.ndim - 1))


# norms: of a tree of [B, ...] or, in the mapped function, of one gradient

SQUARED: dict[str, Callable[[Tree], Array]] = {
    "power": by_leaf(lambda a: (a ** 2).reshape(a.shape[0], -1).sum(1)),
    "product": by_leaf(lambda a: (a * a).sum(tuple(range(1, a.ndim)))),
    "square": by_leaf(lambda a: jnp.sum(jnp.square(a.reshape(a.shape[0], -1)), -1)),
    "absolute": by_leaf(lambda a: (abs(a.reshape(a.shape[0], -1)) ** 2).sum(-1)),
    "einsum": by_leaf(lambda a: jnp.einsum("b...,b...->b", a, a)),
    "einsum_rows": by_leaf(lambda a: jnp.einsum("bi,bi->b", *[a.reshape(a.shape[0], -1)] * 2)),
    "one_by_one": by_leaf(lambda a: (a * a).sum(-1).reshape(a.shape[0], -1).sum(-1)
                          if a.ndim > 1 else a * a),
    "vdot": by_leaf(lambda a: ft.vmap(jnp.vdot)(a, a)),
    "joined": lambda g: (rows(g) ** 2).sum(1),
    "diagonal": lambda g: jnp.diagonal(rows(g) @ rows(g).T),
    "mapped": lambda g: ft.vmap(by_leaf(lambda a: (a * a).sum()))(g),
    "reduced": lambda g: tree.reduce(lambda n, a: n + (a * a).reshape(a.shape[0], -1).sum(1),
                                     g, 0.0),
    "weighted": lambda g: jnp.linalg.norm(rows(g), axis=1) ** 2,
}
NORMS: dict[str, Callable[[Tree], Array]] = {
    **{k: lambda g, f=f: jnp.sqrt(f(g)) for k, f in SQUARED.items()},
    "linalg": lambda g: jnp.linalg.norm(rows(g), axis=1),
    "linalg_mapped": lambda g: ft.vmap(jnp.linalg.norm)(rows(g)),
    "of_norms": lambda g: jnp.linalg.norm(jnp.stack([
        jnp.linalg.norm(a.reshape(a.shape[0], -1), axis=1) for a in tree.leaves(g)]), axis=0),
}
ALONE: dict[str, Callable[[Tree], Array]] = {
    "sum": lambda g: jnp.sqrt(by_leaf(lambda a: (a ** 2).sum())(g)),
    "vdot": lambda g: jnp.sqrt(by_leaf(jnp.vdot)(g, g)),
    "linalg": lambda g: jnp.linalg.norm(jnp.concatenate([a.ravel() for a in tree.leaves(g)])),
    "of_norms": lambda g: jnp.linalg.norm(jnp.stack([
        jnp.linalg.norm(a.ravel()) for a in tree.leaves(g)])),
}


# clipped and weighted sums: weights [B] and gradients [B, ...] to [...]

def factors(n: Array) -> Array:
    return jnp.minimum(1.0, BOUND / jnp.maximum(n, 1e-12))


MEANS: dict[str, Callable[[Array, Array], Array]] = {
    "broadcast": lambda s, a: (spread(s, a) * a).mean(0),
    "tensordot": lambda s, a: jnp.tensordot(s, a, axes=1) / a.shape[0],
    "einsum": lambda s, a: jnp.einsum("b,b...->...", s, a) / a.shape[0],
    "matmul": lambda s, a: (s @ a.reshape(a.shape[0], -1)).reshape(a.shape[1:]) / a.shape[0],
    "transposed": lambda s, a: jnp.moveaxis(a, 0, -1) @ (s / a.shape[0]) if a.ndim > 1 else
    a @ (s / a.shape[0]),
    "mapped": lambda s, a: jnp.sum(ft.vmap(lambda c, x: c * x)(s, a), axis=0) / a.shape[0],
    "accumulated": lambda s, a: lax.fori_loop(0, a.shape[0], lambda i, t: t + s[i] * a[i],
                                              jnp.zeros(a.shape[1:], a.dtype)) / a.shape[0],
    "python": lambda s, a: sum(s[i] * a[i] for i in range(a.shape[0])) / a.shape[0],
}


def clipped(norm: str, mean: str) -> Callable[[Tree], Tree]:
    def consume(g: Tree) -> Tree:
        s = factors(NORMS[norm](g))
        return tree.map(lambda a: MEANS[mean](s, a), g)
    return consume


def clipped_alone(norm: str) -> Callable[..., Tree]:
    """Clipping in the function that is mapped."""
    def one(g: Tree) -> Tree:
        s = factors(ALONE[norm](g))
        return tree.map(lambda a: a * s, g)
    return lambda s, w, xs, ys: tree.map(lambda a: a.mean(0), s.each(one, w, xs, ys))


def clipped_where(g: Tree) -> Tree:
    n = NORMS["power"](g)
    return tree.map(lambda a: jnp.where(spread(n > BOUND, a), a * spread(BOUND / n, a), a).mean(0),
                    g)


def clipped_leaves(g: Tree) -> Tree:
    return tree.map(lambda a: MEANS["broadcast"](factors(NORMS["power"]([a]) + 1e-6), a), g)


def moments(g: Tree) -> Tree:
    return tree.map(lambda a: a.mean(0) / jnp.sqrt((a * a).mean(0) + 1.0), g)


def noise_scale(g: Tree) -> Tree:
    mean = tree.map(lambda a: a.mean(0), g)
    whole, small = by_leaf(jnp.vdot)(mean, mean), SQUARED["power"](g).mean()
    return (small - whole) / (whole + 1.0), small, whole


def accumulated(g: Tree) -> Tree:
    """The variance as a running one."""
    count = rows(g).shape[0]

    def step(i: Any, state: Any) -> Any:
        mean, m2 = state
        d = tree.map(lambda a, m: a[i] - m, g, mean)
        mean = tree.map(lambda m, e: m + e / (i + 1.0).astype(m.dtype), mean, d)
        return mean, tree.map(lambda s, e, a, m: s + e * (a[i] - m), m2, d, g, mean)
    zeros = tree.map(lambda a: jnp.zeros(a.shape[1:], a.dtype), g)
    return tree.map(lambda s: s / count, lax.fori_loop(
        jnp.int32(0), jnp.int32(count), lambda i, s: step(i + jnp.int32(0), s), (zeros, zeros))[1])


@dataclass(frozen=True)
class Consumer:
    """`apply(samples, params, xs, ys)`: a tree, of order norms ** degree.

    `rows` says that the leading axis of each leaf is that of the samples.
    """

    apply: Callable[[Samples, Tree, Array, Array], Tree]
    degree: int
    rows: bool = False


def of_grads(fun: Callable[[Tree], Tree], degree: int, rows: bool = False) -> Consumer:
    return Consumer(lambda s, w, xs, ys: fun(s.grads(w, xs, ys)), degree, rows)


def of_one(fun: Callable[[Tree], Tree], degree: int) -> Consumer:
    return Consumer(lambda s, w, xs, ys: s.each(fun, w, xs, ys), degree, True)


def weighted(weights: Any, mean: str = "broadcast") -> Consumer:
    def consume(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
        c = weights(s, params, xs, ys)
        return tree.map(lambda a: MEANS[mean](c, a), s.grads(params, xs, ys))
    return Consumer(consume, 1)


def losses(s: Samples, params: Tree, xs: Array, ys: Array) -> Array:
    return ft.vmap(s.problem.loss, (None, 0, 0))(params, xs, ys)


def of_jacobian(fun: Callable[[Array], Tree]) -> Consumer:
    """Of the Jacobians of the outputs as [B, outputs, parameters]."""
    def consume(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
        chunk = 2 if s.spelling == "chunks" else None
        j = ft.vmap(ft.jacrev(s.problem.outputs), (None, 0), chunk_size=chunk)(params, xs)
        return fun(j)
    return Consumer(consume, 2)


def flat_jacobian(j: Tree) -> Array:
    return jnp.concatenate([a.reshape(*a.shape[:2], -1) for a in tree.leaves(j)], axis=2)


def between_batches(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
    """The Gram matrix of the outputs on two batches."""
    j = ft.vmap(ft.jacrev(s.problem.outputs), (None, 0))(params, xs)
    k = ft.vmap(ft.jacrev(s.problem.outputs), (None, 0))(params, xs[::-1][:2])
    return by_leaf(lambda a, b: jnp.einsum("boi,cpi->bcop", a.reshape(*a.shape[:2], -1),
                                           b.reshape(*b.shape[:2], -1)))(j, k)


def private_training(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
    """Two steps of gradient descent on clipped means, in a scan."""
    def step(params: Tree, batch: Any) -> Any:
        g = s.grads(params, *batch)
        n = NORMS["power"](g)
        means = tree.map(lambda a: MEANS["tensordot"](factors(n), a), g)
        return tree.map(lambda w, m: w - 0.5 * m, params, means), n
    return lax.scan(step, params, (jnp.stack([xs, xs[::-1]]), jnp.stack([ys, ys[::-1]])))[0]


def private_loop(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
    def step(i: Any, params: Tree) -> Tree:
        means = clipped("product", "einsum")(s.grads(params, xs, ys))
        return tree.map(lambda w, m: w - 0.5 * m, params, means)
    return lax.fori_loop(0, 2, step, params)


def penalty(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
    """The gradient of a loss with a penalty on the norms."""
    def total(params: Tree) -> Array:
        squares = SQUARED["power"](s.grads(params, xs, ys))
        return (losses(s, params, xs, ys) + jnp.sqrt(squares + 0.1)).mean()
    return ft.grad(total)(params)


def penalty_alone(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
    return ft.grad(lambda w: s.each(by_leaf(lambda a: (a * a).sum()), w, xs, ys).sum())(params)


def pushed_norms(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
    return ft.jvp(lambda w: SQUARED["product"](s.grads(w, xs, ys)), (params,),
                  (tree.map(lambda w: constant(w, *w.shape), params),))[1]


def norms_of_samples(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
    """How the norms change with the targets."""
    return ft.grad(lambda ys: SQUARED["product"](s.grads(params, xs, ys)).sum())(ys)


def in_branches(s: Samples, params: Tree, xs: Array, ys: Array) -> Tree:
    g = s.grads(params, xs, ys)
    return lax.cond(xs.sum() > 0, lambda: NORMS["power"](g), lambda: 2.0 * NORMS["product"](g))


CONSUMERS: dict[str, Consumer] = {
    **{f"norm_{k}": of_grads(f, 1, True) for k, f in NORMS.items()},
    **{f"squared_{k}": of_grads(f, 2, True) for k, f in SQUARED.items()},
    **{f"norm_alone_{k}": of_one(f, 1) for k, f in ALONE.items()},
    "norm_mean": of_grads(lambda g: NORMS["power"](g).mean(), 1),
    "norm_max": of_grads(lambda g: NORMS["product"](g).max(), 1),
    "norm_leaves": of_grads(lambda g: tree.map(lambda a: SQUARED["product"]([a]), g), 2, True),
    "norm_leaves_alone": of_one(lambda g: tree.map(lambda a: (a * a).sum(), g), 2),
    "norm_of_columns": of_grads(lambda g: tree.map(lambda a: (a * a).sum(-1), [
        a for a in tree.leaves(g) if a.ndim > 1]), 2, True),
    "norm_of_rows": of_grads(lambda g: tree.map(lambda a: (a * a).sum(1), [
        a for a in tree.leaves(g) if a.ndim > 1]), 2, True),
    **{f"clipped_{m}": of_grads(clipped(n, m), 0)
       for m, n in zip(MEANS, ("power", "product", "joined", "vdot", "einsum", "linalg", "mapped",
                               "square"))},
    **{f"clipped_alone_{k}": Consumer(clipped_alone(k), 0) for k in ALONE},
    "clipped_where": of_grads(clipped_where, 0),
    "clipped_leaves": of_grads(clipped_leaves, 0),
    "normalised": of_grads(lambda g: tree.map(lambda a: MEANS["einsum"](
        1.0 / (NORMS["power"](g) + 0.3), a), g), 0),
    "clipped_and_norms": of_grads(lambda g: (clipped("power", "tensordot")(g),
                                             SQUARED["product"](g).sum()), 2),
    **{f"weighted_{m}": weighted(lambda s, w, xs, ys: ys[:, 0], m) for m in MEANS},
    "weighted_softmax": weighted(lambda *a: nn.softmax(losses(*a)), "einsum"),
    "weighted_losses": weighted(lambda *a: jnp.tanh(losses(*a)), "tensordot"),
    "weighted_mask": weighted(lambda s, w, xs, ys: (ys[:, 0] > 0).astype(ys.dtype), "broadcast"),
    "weighted_twice": of_grads(lambda g: tree.map(lambda a: jnp.einsum(
        "cb,b...->c...", constant(a, 2, a.shape[0]), a), g), 1),
    "sum": of_grads(lambda g: tree.map(lambda a: a.sum(0), g), 1),
    "mean": of_grads(lambda g: tree.map(lambda a: a.mean(0), g), 1),
    "norm_of_mean": of_grads(lambda g: by_leaf(lambda a: (a.mean(0) ** 2).sum())(g), 2),
    "centred": of_grads(lambda g: tree.map(lambda a: a - a.mean(0), g), 1),
    "norm_of_centred": of_grads(lambda g: SQUARED["power"](
        tree.map(lambda a: a - a.mean(0), g)), 2),
    "variance": of_grads(lambda g: tree.map(lambda a: a.var(0), g), 2),
    "variance_ddof": of_grads(lambda g: tree.map(
        lambda a: a.var(0, ddof=min(1, a.shape[0] - 1)), g), 2),
    "variance_moments": of_grads(lambda g: tree.map(
        lambda a: (a ** 2).mean(0) - a.mean(0) ** 2, g), 2),
    "variance_trace": of_grads(lambda g: by_leaf(lambda a: a.var(0).sum())(g), 2),
    "variance_running": of_grads(accumulated, 2),
    "deviation": of_grads(lambda g: tree.map(lambda a: jnp.sqrt(a.var(0) + 1.0), g), 2),
    "fisher": of_grads(lambda g: tree.map(lambda a: (a * a).mean(0), g), 2),
    "fisher_einsum": of_grads(lambda g: tree.map(
        lambda a: jnp.einsum("b...,b...->...", a, a), g), 2),
    "fisher_trace": of_grads(lambda g: rows(g).mean() + (rows(g) ** 2).sum(1).mean(), 2),
    "fisher_weighted": of_grads(lambda g: tree.map(lambda a: MEANS["tensordot"](
        factors(NORMS["power"](g)), a * a), g), 2),
    "covariance": of_grads(lambda g: tree.map(lambda a: jnp.einsum(
        "bi,bj->ij", *[a.reshape(a.shape[0], -1)] * 2), g), 2),
    "moments": of_grads(moments, 1),
    "inner": of_grads(lambda g: by_leaf(lambda a, d: jnp.tensordot(a, d, axes=d.ndim))(
        g, directions(g)), 1, True),
    "inner_product": of_grads(lambda g: by_leaf(lambda a, d: (a * d).reshape(
        a.shape[0], -1).sum(1))(g, directions(g)), 1, True),
    "inner_rows": of_grads(lambda g: rows(g) @ rows(tree.map(
        lambda d: d[None], directions(g)))[0], 1, True),
    "inner_alone": of_one(lambda g: by_leaf(jnp.vdot)(g, tree.map(
        lambda a: constant(a, *a.shape), g)), 1),
    "cosine": of_grads(lambda g: by_leaf(lambda a, d: jnp.einsum("b...,...->b", a, d))(
        g, directions(g)) / (NORMS["power"](g) + 0.3), 0),
    "inner_mean": of_grads(lambda g: by_leaf(lambda a: jnp.tensordot(
        a, a.mean(0), axes=a.ndim - 1))(g), 2),
    "pairs": of_grads(by_leaf(lambda a: (a[:, None] * a[None]).reshape(
        a.shape[0], a.shape[0], -1).sum(-1)), 2),
    "pairs_matmul": of_grads(lambda g: rows(g) @ rows(g).T, 2),
    "pairs_einsum": of_grads(by_leaf(lambda a: jnp.einsum("b...,c...->bc", a, a)), 2),
    "pairs_mapped": of_grads(lambda g: ft.vmap(lambda a: ft.vmap(lambda b: by_leaf(jnp.vdot)(
        a, b))(g))(g), 2),
    "pairs_half": of_grads(by_leaf(lambda a: jnp.einsum("b...,c...->bc", a[:2], a[::2])), 2),
    "neighbours": of_grads(by_leaf(lambda a: (a * jnp.roll(a, 1, 0)).reshape(
        a.shape[0], -1).sum(1)), 2),
    "distances": of_grads(lambda g: ((rows(g)[:, None] - rows(g)[None]) ** 2).sum(-1), 2),
    "first": of_grads(by_leaf(lambda a: jnp.tensordot(a, a[0], axes=a.ndim - 1)), 2),
    "kernel": of_jacobian(lambda j: jnp.einsum("bop,cqp->bocq", *[flat_jacobian(j)] * 2)),
    "kernel_summed": of_jacobian(lambda j: jnp.einsum("bop,cop->bc", *[flat_jacobian(j)] * 2)),
    "kernel_blocks": of_jacobian(by_leaf(lambda a: jnp.einsum(
        "bop,bqp->boq", *[a.reshape(*a.shape[:2], -1)] * 2))),
    "kernel_tensordot": of_jacobian(by_leaf(lambda a: jnp.tensordot(
        a, a, axes=[list(range(2, a.ndim))] * 2))),
    "kernel_trace": of_jacobian(by_leaf(lambda a: (a * a).sum())),
    "kernel_batches": Consumer(between_batches, 2),
    "noise_scale": of_grads(noise_scale, 2),
    "kept": of_grads(lambda g: g, 1, True),
    "kept_and_norms": of_grads(lambda g: (g, NORMS["power"](g)), 1, True),
    "kept_one": of_grads(lambda g: (tree.leaves(g)[0], NORMS["product"](g)), 1, True),
    "kept_first": of_grads(lambda g: (tree.map(lambda a: a[:1], g),
                                      clipped("power", "broadcast")(g)), 1),
    "coordinates": of_grads(lambda g: tree.map(lambda a: jnp.clip(a, -0.05, 0.05).mean(0), g), 1),
    "coordinates_tanh": of_grads(lambda g: tree.map(lambda a: jnp.tanh(a).sum(0), g), 1),
    "largest": of_grads(lambda g: abs(rows(g)).max(1), 1, True),
    "absolute": of_grads(lambda g: tree.map(lambda a: abs(a).mean(0), g), 1),
    "cubes": of_grads(lambda g: tree.map(lambda a: (a ** 3).sum(0), g), 3),
    "fourth": of_grads(lambda g: (rows(g) ** 4).sum(1), 4, True),
    "squares_of_sum": of_grads(lambda g: jnp.square(rows(g).sum(1)), 2),
    "private_training": Consumer(private_training, 1),
    "private_loop": Consumer(private_loop, 1),
    "penalty": Consumer(penalty, 2), "penalty_alone": Consumer(penalty_alone, 2),
    "pushed_norms": Consumer(pushed_norms, 2), "norms_of_samples": Consumer(norms_of_samples, 2),
    "in_branches": Consumer(in_branches, 1, True),
}


# where the program stands: in what it is wrapped. A leading axis of 2 is added by some.

def halved(params: Tree) -> Tree:
    """Two sets of parameters."""
    return tree.map(lambda w: jnp.stack([w, 0.5 * w]), params)


PLACES: dict[str, Callable[..., Tree]] = {
    "plain": lambda f, w, xs, ys: f(w, xs, ys),
    "jit": lambda f, w, xs, ys: ft.jit(f)(w, xs, ys),
    "checkpoint": lambda f, w, xs, ys: ft.checkpoint(f)(w, xs, ys),
    "ensemble": lambda f, w, xs, ys: ft.vmap(f, (0, None, None))(halved(w), xs, ys),
    "ensemble_scan": lambda f, w, xs, ys: lax.map(lambda v: f(v, xs, ys), halved(w)),
    "batches": lambda f, w, xs, ys: ft.vmap(f, (None, 0, 0))(
        w, jnp.stack([xs, xs[::-1]]), jnp.stack([ys, ys[::-1]])),
    "batches_scan": lambda f, w, xs, ys: lax.map(
        lambda s: f(w, *s), (jnp.stack([xs, xs[::-1]]), jnp.stack([ys, ys[::-1]]))),
    "named": lambda f, w, xs, ys: ft.vmap(lambda v: tree.map(
        lambda a: a + 0.0 * lax.psum(a, "n"), f(v, xs, ys)), axis_name="n")(halved(w)),
}


@dataclass(frozen=True)
class Program:
    """A consumer of the gradients of a network, spelled in some way, in some place."""

    spelling: str
    consumer: str
    place: str

    def on(self, problem: Problem) -> Callable[[Tree, Array, Array], Tree]:
        samples = Samples(problem, self.spelling)
        apply = CONSUMERS[self.consumer].apply
        return lambda params, xs, ys: PLACES[self.place](
            lambda *a: apply(samples, *a), params, xs, ys)


def programs() -> Any:
    return st.builds(Program, st.sampled_from(["vmap"] * 8 + list(SPELLINGS)),
                     st.sampled_from(list(CONSUMERS)),
                     st.sampled_from(["plain"] * 12 + list(PLACES)))
