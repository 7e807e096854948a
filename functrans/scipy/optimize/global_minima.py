"""Minima among many: by differential evolution, by hops between minima, by annealing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, one_of, random_key, refused
from functrans.scipy.optimize.constraints import Sides, sides_of
from functrans.scipy.optimize.implicit import (
    Function,
    scalar_value,
    solution,
    start_of,
    with_args,
)
from functrans.scipy.optimize.minimizing import minimize
from functrans.scipy.optimize.results import OptimizeResults
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike


def key_of(name: str, rng: Any) -> Array:
    """A key of random numbers: rng itself, or one of a seed, which is 0 for None."""
    return random_key(f"optimize.{name}", rng)


def box_of(name: str, bounds: Any) -> tuple[Array, Array]:
    """The ends of finite intervals, one for each variable: pairs, or `Bounds` with arrays."""
    if hasattr(bounds, "lb"):
        lower, upper = jnp.broadcast_arrays(*inexact(bounds.lb, bounds.ub))
        lower, upper = jnp.atleast_1d(lower), jnp.atleast_1d(upper)
    else:
        pairs = isinstance(bounds, Sequence) or hasattr(bounds, "shape")
        if not pairs or not len(bounds) or any(
                not hasattr(b, "__len__") or len(b) != 2 or b[0] is None or b[1] is None
                for b in bounds):
            raise ArgumentError(f"functrans.scipy.optimize.{name}: bounds are {shown(bounds)}.",
                                where=user_source(), why="each variable has two finite ones.",
                                fix="bounds=[(-1.0, 1.0), (0.0, 2.0)]")
        both = inexact(*(v for b in bounds for v in b))
        lower, upper = jnp.stack(both[0::2]), jnp.stack(both[1::2])
    if lower.ndim != 1:
        raise ShapeError(f"functrans.scipy.optimize.{name}: the bounds have shape {lower.shape}.",
                         where=user_source(), why="there is a pair for each variable.")
    if not is_traced(lower) and not is_traced(upper):
        known = [np.asarray(lax.stop_gradient(v)) for v in (lower, upper)]
        if not (np.isfinite(known).all() and (known[0] <= known[1]).all()):
            raise ArgumentError(f"functrans.scipy.optimize.{name}: bounds from {known[0]} to "
                                f"{known[1]}.", where=user_source(),
                                why="they are finite, and the lower one comes first.")
    return lower, upper


def searched(start: Array, search: Callable[[Array], tuple[Array, Any]]) -> tuple[Array, Any]:
    """What a search finds, as a number without derivative: the search itself has none."""
    return solution(lambda x: x, start, search)


def _finished(name: str, fun: Function, best: Array, lowest: Array, finish: Any, success: Array,
              status: Array, nfev: Array, nit: Array) -> OptimizeResults:
    """The result, with the derivatives of the minimum that `finish(best)` finds from there."""
    if finish is None:
        none = jnp.zeros_like(best)
        return OptimizeResults(best, success, status, scalar_value(name, fun, best), none, None,
                               nfev, nfev * 0, nit)
    end = finish(best)
    better = end.fun <= lowest + 4 * jnp.finfo(lowest.dtype).eps * jnp.abs(lowest)
    x = jnp.where(better, end.x, best)
    return OptimizeResults(x, success, status, jnp.where(better, end.fun, lowest), end.jac, None,
                           nfev + end.nfev, end.njev, nit)


# Differential evolution ------------------------------------------------------------------------

_STRATEGIES = tuple(f"{base}{cross}" for cross in ("bin", "exp") for base in (
    "best1", "best2", "rand1", "rand2", "randtobest1", "currenttobest1"))


class _Population(NamedTuple):
    members: Array  # in units of the box
    values: Array
    missed: Array  # how far constraints are from being met
    key: Array
    nit: Array
    nfev: Array


def differential_evolution(
        func: Function, bounds: Any, args: tuple[Any, ...] = (), strategy: str = "best1bin",
        maxiter: int = 1000, popsize: int = 15, tol: float = 0.01,
        mutation: float | tuple[float, float] = (0.5, 1), recombination: float = 0.7,
        rng: Any = None, callback: None = None, disp: bool = False, polish: bool = True,
        init: Any = "latinhypercube", atol: float = 0, updating: str = "deferred",
        workers: int = 1, constraints: Any = (), x0: ArrayLike | None = None, *,
        integrality: Any = None, vectorized: bool = False, seed: Any = None) -> OptimizeResults:
    """The lowest minimum of `func(x, *args)` in a box, by a population of `popsize` times n points.

    A generation is one `vmap` of func, or with `vectorized` one call on columns (n, points).
    Random numbers come from `rng`, a key or a seed (0 by default). `init` is "latinhypercube",
    "random", or the points (m, n). With `polish` the minimum is sought from there ("L-BFGS-B", or
    "SLSQP" under constraints), and has its derivatives in what func closes over. Whole variables
    (`integrality`) are rounded, and no polish moves them. `updating` and `workers` are accepted.
    Raises ArgumentError for unknown strategies and bounds that are not finite pairs.
    Source: Storn and Price, J. Global Optimization 11 (1997); Lampinen (2002) for constraints.

    >>> import functrans as ft
    >>> f = lambda x: ((x - 0.5) ** 2).sum() - ft.numpy.cos(6 * x).sum()
    >>> found = ft.scipy.optimize.differential_evolution(f, [(-5.0, 5.0)] * 2)
    >>> print(found.x.round(2))
    [0.03 0.03]
    """
    name = "differential_evolution"
    one_of(f"optimize.{name}", "strategy", strategy, _STRATEGIES)
    one_of(f"optimize.{name}", "callback", callback, (None,))
    one_of(f"optimize.{name}", "updating", updating, ("deferred", "immediate"))
    of_args = with_args(name, func, args)
    lower, upper = box_of(name, bounds)
    n = lower.size
    whole = np.broadcast_to(np.asarray(False if integrality is None else integrality, bool), (n,))
    key, first = random.split(key_of(name, seed if rng is None else rng))
    start = _initial(init, first, known_size(f"optimize.{name}", "popsize", popsize) * n, lower,
                     upper)
    if x0 is not None:
        start = start.at[0].set(jnp.clip((inexact(x0)[0] - lower) / (upper - lower), 0, 1))
    start = start.astype(lower.dtype)
    count = start.shape[0]
    if count < 5:
        raise ArgumentError(f"functrans.scipy.optimize.{name}: there are {count} points.",
                            where=user_source(), why="a strategy takes five.", fix="popsize=15")
    sides = sides_of(constraints, lower, (n,))
    low, high = (float(v) for v in (mutation if isinstance(mutation, Sequence) else (
        mutation, mutation)))

    def place(u: Array) -> Array:
        x = lower + u * (upper - lower)
        if whole.any():
            x = jnp.where(whole, jnp.clip(jnp.round(x), jnp.ceil(lower), jnp.floor(upper)), x)
        return x

    def measured(units: Array) -> tuple[Array, Array]:
        xs = vmap(place)(units)
        values = jnp.asarray(of_args(xs.T)).astype(xs.dtype) if vectorized else vmap(
            lambda x: scalar_value(name, of_args, x))(xs)
        return jnp.where(jnp.isnan(values), math.inf, values), vmap(
            lambda x: _missed(sides, x))(xs)

    def close(p: _Population) -> Array:
        mean = jnp.mean(p.values)
        near = jnp.std(p.values) <= atol + tol * jnp.abs(mean)
        return near & jnp.isfinite(mean)

    def unfinished(p: _Population) -> Array:
        return (p.nit < maxiter) & ~close(p)

    def improve(p: _Population) -> _Population:
        key, now = random.split(p.key)
        trial = _trials(strategy, p, now, low, high, recombination)
        values, missed = measured(trial)
        wins = jnp.where(missed > 0, missed <= p.missed, (p.missed > 0) | (values <= p.values))
        return _Population(
            jnp.where(wins[:, None], trial, p.members), jnp.where(wins, values, p.values),
            jnp.where(wins, missed, p.missed), key, p.nit + 1, p.nfev + count)

    def search(_: Array) -> tuple[Array, Any]:
        values, missed = measured(start)
        end = lax.while_loop(unfinished, improve, _Population(
            start, values, missed, key, jnp.asarray(0), jnp.asarray(count)))
        i = _best(end.values, end.missed)
        return place(end.members[i]), (end.values[i], close(end) & (end.missed[i] == 0), end.nit,
                                       end.nfev)

    best, (lowest, found, nit, nfev) = searched(lower, search)
    finish = None
    if polish and not whole.all():
        ends = (jnp.where(whole, best, lower), jnp.where(whole, best, upper))
        more: Mapping[str, Any] = {"constraints": constraints} if _some(constraints) else {}

        def finish(x: Array) -> OptimizeResults:
            return minimize(func, x, args if isinstance(args, tuple) else (args,), bounds=ends,
                            method="SLSQP" if more else "L-BFGS-B", **more)
    if polish and finish is not None and _some(constraints):
        # a point that misses constraints has a low value, and is no minimum
        lowest = jnp.where(_missed(sides, best) > 0, math.inf, lowest)
    return _finished(name, of_args, best, lowest, finish, found, jnp.where(found, 0, 1), nfev, nit)


def _some(constraints: Any) -> bool:
    return bool(constraints) or hasattr(constraints, "_fields")


def _missed(sides: Sides, x: Array) -> Array:
    return jnp.sum(jnp.abs(sides.equal(x))) + jnp.sum(jnp.maximum(-sides.above(x), 0))


def _best(values: Array, missed: Array) -> Array:
    """The lowest of those that meet the constraints, or the one that misses them least."""
    some = jnp.any(missed == 0)
    return jnp.argmin(jnp.where(some, jnp.where(missed == 0, values, math.inf), missed))


def _initial(init: Any, key: Array, count: int, lower: Array, upper: Array) -> Array:
    n, dtype = lower.size, lower.dtype
    if not isinstance(init, str):
        (points,) = inexact(init)
        if points.ndim != 2 or points.shape[1] != n:
            raise ShapeError(f"functrans.scipy.optimize.differential_evolution: init has shape "
                             f"{points.shape}.", where=user_source(), why=f"it is (points, {n}).")
        return jnp.clip((points - lower) / (upper - lower), 0, 1)
    one_of("optimize.differential_evolution", "init", init, ("latinhypercube", "random"))
    keys = random.split(key, 2)
    u = random.uniform(keys[0], (count, n), dtype)
    if init == "random":
        return u
    # a point in each of as many slices of each axis as there are points
    order = vmap(lambda k: random.permutation(k, count))(random.split(keys[1], n)).T
    return (order + u) / count


def _trials(strategy: str, p: _Population, key: Array, low: float, high: float, cross: float
            ) -> Array:
    """A trial for each member: a mutant, and between both coordinates of the one or the other."""
    count, n = p.members.shape
    keys = random.split(key, 5)
    dtype = p.members.dtype
    scale = random.uniform(keys[0], (), dtype, low, high)
    # for each member five others, all different: the first in an order of its own
    rank = random.uniform(keys[1], (count, count), dtype) + 2 * jnp.eye(count, dtype=dtype)
    others = p.members[jnp.argsort(rank, axis=1)[:, :min(5, count - 1)]]
    a, b, c, d = (others[:, i] for i in range(4))
    e = others[:, 4] if count > 5 else p.members
    best = p.members[_best(p.values, p.missed)]
    base = strategy[:-3]
    mutant = {"best1": lambda: best + scale * (a - b), "rand1": lambda: a + scale * (b - c),
              "best2": lambda: best + scale * (a + b - c - d),
              "rand2": lambda: a + scale * (b + c - d - e),
              "randtobest1": lambda: a + scale * (best - a) + scale * (b - c),
              "currenttobest1": lambda: p.members + scale * (best - p.members + a - b)}[base]()
    sure = random.randint(keys[2], (count, 1), 0, n)
    chance = random.uniform(keys[3], (count, n), dtype) < cross
    places = jnp.arange(n)
    if strategy.endswith("bin"):
        taken = chance | (places == sure)
    else:  # a run of coordinates from one on, as long as chance has it
        run = jnp.cumprod(jnp.concatenate([jnp.ones((count, 1), bool), chance[:, 1:]], axis=1)
                          .astype(jnp.int32), axis=1)
        taken = jnp.take_along_axis(run, (places - sure) % n, axis=1) > 0
    trial = jnp.where(taken, mutant, p.members)
    outside = (trial < 0) | (trial > 1)
    return jnp.where(outside, random.uniform(keys[4], trial.shape, dtype), trial)


# Hops between minima ---------------------------------------------------------------------------


class _Hop(NamedTuple):
    x: Array
    value: Array
    best: Array
    lowest: Array
    key: Array
    step: Array
    accepted: Array
    idle: Array
    nit: Array
    nfev: Array


def basinhopping(func: Function, x0: ArrayLike, niter: int = 100, T: float = 1.0,
                 stepsize: float = 0.5, minimizer_kwargs: Mapping[str, Any] | None = None,
                 take_step: Function | None = None, accept_test: Function | None = None,
                 callback: None = None, interval: int = 50, disp: bool = False,
                 niter_success: int | None = None, rng: Any = None, *, seed: Any = None,
                 target_accept_rate: float = 0.5, stepwise_factor: float = 0.9
                 ) -> OptimizeResults:
    """The lowest of the minima that `niter` random steps lead to, each found by `minimize`.

    A step that leads higher is taken with the probability exp(-rise / T). Steps are uniform up to
    `stepsize`, which every `interval` of them is adapted so that `target_accept_rate` are taken;
    `take_step(x, key)` makes other ones, and `accept_test(f_new=, x_new=, f_old=, x_old=)` says
    whether a step may be taken. Ends early after `niter_success` steps without a lower minimum.
    `minimizer_kwargs` are those of `minimize` ("BFGS" by default), `rng` is a key or a seed (0 by
    default). The minimum has its derivatives in what func closes over.
    Source: Wales and Doye, J. Phys. Chem. A 101 (1997).

    >>> import functrans as ft
    >>> f = lambda x: ft.numpy.cos(14.5 * x[0] - 0.3) + (x[0] + 0.2) * x[0]
    >>> found = ft.scipy.optimize.basinhopping(f, [1.0], niter=30)
    >>> round(float(found.x[0]), 3)
    -0.195
    """
    one_of("optimize.basinhopping", "callback", callback, (None,))
    start = start_of("basinhopping", "x0", x0)
    options = dict(minimizer_kwargs or {})
    key = key_of("basinhopping", seed if rng is None else rng)
    quiet = niter + 2 if niter_success is None else niter_success

    def local(x: Array) -> OptimizeResults:
        return minimize(func, x, **options)

    def unfinished(h: _Hop) -> Array:
        return (h.nit < niter) & (h.idle < quiet)

    def improve(h: _Hop) -> _Hop:
        key, one, two = random.split(h.key, 3)
        if take_step is None:
            trial = h.x + random.uniform(one, h.x.shape, h.x.dtype, -1.0, 1.0) * h.step
        else:
            trial = jnp.asarray(take_step(h.x, one)).astype(h.x.dtype)
        end = local(trial)
        rise = end.fun - h.value
        chance = jnp.exp(-jnp.maximum(rise, 0) / T) if T else (rise <= 0).astype(rise.dtype)
        taken = (random.uniform(two, (), h.x.dtype) < chance) & ~jnp.isnan(end.fun)
        if accept_test is not None:
            taken = taken & accept_test(f_new=end.fun, x_new=end.x, f_old=h.value, x_old=h.x)
        lower = taken & (end.fun < h.lowest)
        nit, accepted = h.nit + 1, h.accepted + taken
        adapt = (nit % interval == 0) if take_step is None else jnp.asarray(False)
        rate = accepted / nit
        factor = jnp.where(rate > target_accept_rate, 1 / stepwise_factor, stepwise_factor)
        return _Hop(jnp.where(taken, end.x, h.x), jnp.where(taken, end.fun, h.value),
                    jnp.where(lower, end.x, h.best), jnp.where(lower, end.fun, h.lowest), key,
                    jnp.where(adapt, h.step * factor, h.step).astype(h.step.dtype), accepted,
                    jnp.where(lower, 0, h.idle + 1), nit, h.nfev + end.nfev)

    def search(x: Array) -> tuple[Array, Any]:
        end = local(x)
        zero = jnp.asarray(0)
        last = lax.while_loop(unfinished, improve, _Hop(
            end.x, end.fun, end.x, end.fun, key, jnp.asarray(stepsize, x.dtype), zero, zero, zero,
            end.nfev))
        return last.best, (last.lowest, last.nit, last.nfev)

    best, (lowest, nit, nfev) = searched(start, search)
    end = local(best)
    x = jnp.where(end.fun <= lowest, end.x, best)
    return OptimizeResults(end.x, end.success | (end.fun <= lowest), end.status, end.fun, end.jac,
                           end.hess_inv, nfev + end.nfev, nfev + end.nfev, nit)._replace(x=x)


# Annealing -------------------------------------------------------------------------------------


class _Annealed(NamedTuple):
    x: Array
    value: Array
    best: Array
    lowest: Array
    key: Array
    age: Array  # iterations since the temperature was last set
    nit: Array
    nfev: Array


def dual_annealing(func: Function, bounds: Any, args: tuple[Any, ...] = (), maxiter: int = 1000,
                   minimizer_kwargs: Mapping[str, Any] | None = None, initial_temp: float = 5230.0,
                   restart_temp_ratio: float = 2e-5, visit: float = 2.62, accept: float = -5.0,
                   maxfun: float = 1e7, rng: Any = None, no_local_search: bool = False,
                   callback: None = None, x0: ArrayLike | None = None, *, seed: Any = None
                   ) -> OptimizeResults:
    """The lowest minimum in a box, by generalized simulated annealing and searches from low points.

    In each of `maxiter` iterations 2 n steps of heavy tails are tried, half of them along one axis,
    and a minimum is sought from what is lower than all before ("L-BFGS-B", or `minimizer_kwargs`).
    Below `restart_temp_ratio` the temperature starts anew. `rng` is a key or a seed (0 by default).
    The minimum has its derivatives in what func closes over; with `no_local_search` none.
    Raises ArgumentError for bounds that are not finite pairs and parameters that have no meaning.
    Source: Xiang et al., Physics Letters A 233 (1997).

    >>> import functrans as ft
    >>> f = lambda x: (x * x - 10 * ft.numpy.cos(2 * ft.numpy.pi * x)).sum() + 20
    >>> found = ft.scipy.optimize.dual_annealing(f, [(-5.12, 5.12)] * 2, maxiter=300, rng=1)
    >>> abs(found.fun.round(3)).item()
    0.0
    """
    name = "dual_annealing"
    one_of(f"optimize.{name}", "callback", callback, (None,))
    if not 0 < restart_temp_ratio < 1:
        raise refused(f"optimize.{name}", f"restart_temp_ratio={restart_temp_ratio}",
                      "it is between 0 and 1.")
    if not (1 < visit < 3 and accept < 0):
        raise refused(f"optimize.{name}", f"visit={visit} and accept={accept}",
                      "visit is between 1 and 3, and accept below 0.")
    of_args = with_args(name, func, args)
    lower, upper = box_of(name, bounds)
    n, dtype = lower.size, lower.dtype
    key, first = random.split(key_of(name, seed if rng is None else rng))
    start = random.uniform(first, (n,), dtype) * (upper - lower) + lower if x0 is None else \
        jnp.clip(inexact(x0)[0].astype(dtype), lower, upper)
    local = {"method": "L-BFGS-B", "bounds": (lower, upper), **(minimizer_kwargs or {})}

    def value(x: Array) -> Array:
        found = scalar_value(name, of_args, x)
        return jnp.where(jnp.isnan(found), math.inf, found)

    def finish(x: Array) -> OptimizeResults:
        return minimize(func, x, args if isinstance(args, tuple) else (args,), **local)

    def temperature(age: Array) -> Array:
        first = math.exp((visit - 1) * math.log(2)) - 1
        later = jnp.exp((visit - 1) * jnp.log(age.astype(dtype) + 2)) - 1
        return initial_temp * first / later

    def improve(s: _Annealed) -> _Annealed:
        heat = temperature(s.age)
        cold = heat < initial_temp * restart_temp_ratio
        key, again = random.split(s.key)
        fresh = lower + random.uniform(again, (n,), dtype) * (upper - lower)
        x = jnp.where(cold, fresh, s.x)
        at = jnp.where(cold, value(x), s.value)
        age = jnp.where(cold, 0, s.age)
        heat = temperature(age)

        def visited(j: Any, state: Any) -> Any:
            x, at, best, lowest, key = state
            key, one, two = random.split(key, 3)
            jump = jnp.clip(_jumps(one, n, heat, visit, dtype), -1e8, 1e8)
            jump = jnp.where((j < n) | (jnp.arange(n) == j - n), jump, 0)
            width = upper - lower
            trial = lower + jnp.mod(jnp.mod(x + jump - lower, width) + width, width)
            new = value(trial)
            share = 1 - (1 - accept) * (new - at) / (heat / (age + 1))
            chance = jnp.where(share <= 0, 0, jnp.exp(jnp.log(jnp.where(
                share > 0, share, 1)) / (1 - accept)))
            taken = (new < at) | (random.uniform(two, (), dtype) <= chance)
            lower_yet = new < lowest
            return (jnp.where(taken, trial, x), jnp.where(taken, new, at),
                    jnp.where(lower_yet, trial, best), jnp.where(lower_yet, new, lowest), key)

        x, at, best, lowest, key = lax.fori_loop(0, 2 * n, visited, (
            x, at, s.best, s.lowest, key))
        calls = s.nfev + 2 * n
        if not no_local_search:
            def descended(_: Any) -> Any:
                end = finish(best)
                good = end.fun < lowest
                return (jnp.where(good, end.x, best), jnp.where(good, end.fun, lowest),
                        jnp.where(good, end.x, x), jnp.where(good, end.fun, at), end.nfev)

            best, lowest, x, at, more = lax.cond(
                lowest < s.lowest, descended, lambda _: (best, lowest, x, at, calls * 0), 0)
            calls = calls + more
        return _Annealed(x, at, best, lowest, key, age + 1, s.nit + 1, calls)

    def search(x: Array) -> tuple[Array, Any]:
        at, zero = value(x), jnp.asarray(0)
        end = lax.while_loop(lambda s: (s.nit < maxiter) & (s.nfev < maxfun), improve, _Annealed(
            x, at, x, at, key, zero, zero, zero + 1))
        return end.best, (end.lowest, end.nit, end.nfev)

    best, (lowest, nit, nfev) = searched(start, search)
    ended = nit >= maxiter
    return _finished(name, of_args, best, lowest, None if no_local_search else finish, ended,
                     jnp.where(ended, 0, 1), nfev, nit)


def _jumps(key: Array, n: int, heat: Array, visit: float, dtype: Any) -> Array:
    """Steps of the visiting distribution of Tsallis and Stariolo (1996)."""
    x, y = random.normal(key, (2, n), dtype)
    q = visit - 1
    factor2 = math.exp((4 - visit) * math.log(q))
    factor3 = math.exp((2 - visit) * math.log(2) / q)
    factor4 = jnp.sqrt(math.pi) * jnp.exp(jnp.log(heat) / q) * factor2 / (factor3 * (3 - visit))
    factor5 = 1 / q - 0.5
    d1 = 2 - factor5
    factor6 = math.pi * (1 - factor5) / math.sin(math.pi * (1 - factor5)) / math.exp(
        math.lgamma(d1))
    x = x * jnp.exp(-q * jnp.log(factor6 / factor4) / (3 - visit))
    return x / jnp.exp(q * jnp.log(jnp.abs(y)) / (3 - visit))
