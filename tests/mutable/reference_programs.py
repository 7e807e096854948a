"""Programs of references under derivatives, of JAX or functrans: each is given the package.

`record(jax)` is what `data/references.json` holds of JAX 0.10.2: `results`, and under `unchecked`
those of `JAX_DISABLE_BWD_CHECKS=1`, without which its pullbacks refuse references that are read
whole. `None` is a program that JAX refuses.
"""

import numpy as np


def shown(x):
    """Numbers of arrays and references, lists of others."""
    if isinstance(x, (list, tuple)):
        return [shown(y) for y in x]
    if isinstance(x, dict):
        return {k: shown(x[k]) for k in sorted(x)}
    if x is None or isinstance(x, str):
        return x
    return np.asarray(x[...] if type(x).__name__ == "Ref" else x).tolist()


def record(package):
    results = {}
    for name, program in PROGRAMS.items():
        try:
            results[name] = shown(program(package))
        except Exception:
            results[name] = None
    return results


def product(x, r):
    return x * r[...] ** 2


def scaled(x, r):
    r[...] = x * r[...]
    return x * r[...]


def rewritten(x, r):
    before = r[...]
    r[...] = 5 * x
    return x * before


def written(x, r):
    r[...] = 2 * x
    return x * x


def untouched(x, r):
    return x * x


FUNCTIONS = {f.__name__: f for f in (product, scaled, rewritten, written, untouched)}


def pulled(f, compiled=False):
    def program(ft):
        r, of_x, of_r = ft.new_ref(3.0), ft.new_ref(10.0), ft.new_ref(100.0)
        out, pull = ft.vjp(ft.jit(f) if compiled else f, 2.0, r)
        between = shown(r)
        found = pull.with_refs(of_x, of_r)(1.0)
        return out, between, [type(x).__name__ for x in found], of_x, of_r, r
    return program


def pushed(f, compiled=False):
    def program(ft):
        r, t = ft.new_ref(3.0), ft.new_ref(1.0)
        out, push = ft.linearize(ft.jit(f) if compiled else f, 2.0, r)
        between = shown(r)
        return out, between, [(shown(push(1.0, t)), shown(t)) for _ in range(2)], r
    return program


def with_tangent(f):
    def program(ft):
        r, t = ft.new_ref(3.0), ft.new_ref(1.0)
        return ft.jvp(f, (2.0, r), (1.0, t)), r, t
    return program


def beside(transform):
    """A derivative in another argument, of a function that counts in a reference."""
    def program(ft):
        r, n = ft.new_ref(3.0), ft.new_ref(0)

        def f(x, r, n):
            n[...] += 1
            r[...] += 1.0
            return x * x * r[...]

        return transform(ft)(f)(2.0, r, n), r, n
    return program


def gradient_in_reference(ft):
    r = ft.new_ref(3.0)
    return ft.grad(product, argnums=(0, 1))(2.0, r), r


def gradient_in_tree(ft):
    r = ft.new_ref(3.0)
    return ft.value_and_grad(lambda d: product(d["x"], d["r"]))({"x": 2.0, "r": r}), r


def parts(ft):
    r, of_x, of_r = ft.new_ref(ft.numpy.arange(3.0)), ft.new_ref(0.0), ft.new_ref(
        ft.numpy.zeros(3))

    def f(x, r):
        r[0] = x * r[1]
        return (r[...] ** 2).sum()

    out, pull = ft.vjp(f, 2.0, r)
    pull.with_refs(of_x, of_r)(1.0)
    return out, of_x, of_r, r


def branch(ft):
    r, of_x, of_r = ft.new_ref(3.0), ft.new_ref(0.0), ft.new_ref(100.0)

    def f(x, r):
        def scale():
            r[...] = r[...] * x
        ft.lax.cond(x > 0, scale, lambda: None)
        return 2 * x

    out, pull = ft.vjp(f, 2.0, r)
    pull.with_refs(of_x, of_r)(1.0)
    return out, of_x, of_r, r


def lanes(ft):
    r, of_r = ft.new_ref(ft.numpy.arange(3.0)), ft.new_ref(ft.numpy.zeros(3))

    def lane(x, r, of_r):
        _, pull = ft.vjp(product, x, r)
        of_x = ft.new_ref(0.0 * x)
        pull.with_refs(of_x, of_r)(1.0)
        return of_x[...]

    return ft.vmap(lane)(ft.numpy.ones(3), r, of_r), of_r


def compiled_accumulation(ft):
    r, of_r = ft.new_ref(3.0), ft.new_ref(0.0)

    def step(x, r, of_r):
        out, pull = ft.vjp(product, x, r)
        of_x = ft.new_ref(0.0)
        pull.with_refs(of_x, of_r)(1.0)
        return out, of_x[...]

    return ft.jit(step)(2.0, r, of_r), of_r


def gradient_of_pullback(ft):
    def f(x):
        r, of_x, of_r = ft.new_ref(x * x), ft.new_ref(0.0 * x), ft.new_ref(0.0 * x)
        _, pull = ft.vjp(product, x, r)
        pull.with_refs(of_x, of_r)(1.0)
        return of_r[...] + of_x[...]

    return ft.grad(f)(1.5)


def noted(ft):
    @ft.custom_vjp
    def same(x, r):
        return x

    def note(r, ct):
        r[...] = 2 * r[...] + ct
        return ct, None

    same.defvjp(lambda x, r: (x, r), note)
    return same


def noted_gradient(ft):
    r = ft.new_ref(0.0)
    return ft.grad(lambda x, r: noted(ft)(ft.numpy.sin(x), r) * x)(2.0, r), r


def noted_in_an_input(ft):
    r, of_x, of_r = ft.new_ref(0.5), ft.new_ref(0.0), ft.new_ref(100.0)
    out, pull = ft.vjp(lambda x, r: noted(ft)(x * r[...], r), 2.0, r)
    pull.with_refs(of_x, of_r)(1.0)
    return out, of_x, of_r, r


def noted_in_lanes(ft):
    r = ft.new_ref(2.0)
    return ft.vmap(lambda x: noted(ft)(x, r))(ft.numpy.ones(2)), r


def with_rule(ft, symbolic_zeros=False):
    """x times the reference, whose rule says 7 and what the tangent of the reference is."""
    @ft.custom_jvp
    def f(x, r):
        return x * r[...]

    def rule(primals, tangents):
        (x, r), (t, of_r) = primals, tangents
        return x * r[...], 7 * t + (0.0 if symbolic_zeros else of_r[...])

    f.defjvp(rule, symbolic_zeros=symbolic_zeros)
    return f


def rule_of_value(ft):
    r = ft.new_ref(3.0)
    return with_rule(ft)(2.0, r), with_rule(ft)(2.0, r=r), r


def rule_of_jvp(ft):
    r, t, f = ft.new_ref(3.0), ft.new_ref(100.0), with_rule(ft)
    return ft.jvp(f, (2.0, r), (1.0, t)), ft.jvp(lambda x: f(x, r), (2.0,), (1.0,)), r, t


def rule_of_grad(ft):
    r, f = ft.new_ref(3.0), with_rule(ft)
    return [transform(2.0, r) for transform in
            (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)),
             ft.grad(lambda x, r: ft.grad(lambda x: f(x * x, r))(x)))], r


def rule_of_zeros(ft):
    r, f = ft.new_ref(3.0), with_rule(ft, symbolic_zeros=True)
    return f(2.0, r), ft.grad(f)(2.0, r)


def rule_of_lanes(ft):
    r, f, xs = ft.new_ref(ft.numpy.arange(3.0)), with_rule(ft), ft.numpy.ones(3)
    one = ft.new_ref(2.0)
    return [ft.vmap(f)(xs, r), ft.vmap(ft.grad(f))(xs, r), ft.vmap(f, in_axes=(0, None))(xs, one),
            ft.vmap(ft.grad(f), in_axes=(0, None))(xs, one),
            ft.grad(lambda x: ft.vmap(lambda x: f(x, one))(x).sum())(xs)]


def rule_of_reference_inside(ft):
    f = with_rule(ft)

    def inside(x):
        return f(x, ft.new_ref(x * x))

    return ft.grad(inside)(2.0), ft.jvp(inside, (2.0,), (1.0,))


def rule_of_tree(ft):
    @ft.custom_jvp
    def f(d):
        return d["x"] * d["r"][...]

    @f.defjvp
    def rule(primals, tangents):
        (d,), (t,) = primals, tangents
        return d["x"] * d["r"][...], t["x"] * 7 + t["r"][...]

    d, t = {"x": 2.0, "r": ft.new_ref(3.0)}, {"x": 1.0, "r": ft.new_ref(50.0)}
    return f(d), ft.jvp(f, (d,), (t,))


def rules_by_argument(ft):
    @ft.custom_jvp
    def f(x, r):
        return x * r[...]

    f.defjvps(lambda t, out, x, r: t * 7, None)
    r = ft.new_ref(3.0)
    return f(2.0, r), ft.grad(f)(2.0, r)


def counts(ft):
    @ft.custom_jvp
    def f(x, n):
        n[...] += 1
        return x

    @f.defjvp
    def rule(primals, tangents):
        n = primals[1]
        n[...] += 10
        return primals[0], 7 * tangents[0]

    return f


def rule_that_counts(ft):
    f, seen = counts(ft), []
    for start in (0.0, 0):
        n = ft.new_ref(start)
        for run in (f, ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)),
                    lambda x, n: ft.linearize(lambda x: f(x, n), x)[1](1.0),
                    ft.grad(lambda x, n: ft.lax.scan(lambda c, _: (f(c, n), None), x, None,
                                                     length=2)[0])):
            seen += [shown(run(2.0, n)), shown(n)]
    return seen


def rule_that_counts_in_an_input(ft):
    n, of_x, of_n = ft.new_ref(0.0), ft.new_ref(0.0), ft.new_ref(100.0)
    out, pull = ft.vjp(counts(ft), 2.0, n)
    pull.with_refs(of_x, of_n)(1.0)
    return out, n, of_x, of_n


def writer(ft):
    @ft.custom_jvp
    def f(x, r):
        r[...] = x * r[...]
        return x

    @f.defjvp
    def rule(primals, tangents):
        (x, r), (t, of_r) = primals, tangents
        of_r[...] = t * r[...] + x * of_r[...]
        r[...] = x * r[...]
        return x, 7 * t

    return f


def rule_that_writes(ft):
    r, t = ft.new_ref(3.0), ft.new_ref(10.0)
    return ft.jvp(writer(ft), (2.0, r), (1.0, t)), r, t


def rule_that_writes_inside(ft):
    def inside(x):
        r = ft.new_ref(x * x)
        writer(ft)(x, r)
        return r[...]

    return ft.grad(inside)(2.0), ft.jvp(inside, (2.0,), (1.0,))


def double(x, r):
    return 2 * x


def multiply(x, r):
    r[...] = r[...] * x
    return x**2 + r[...]


def replace(x, r):
    r[...] = 3 * x
    return 2 * x


def read(x, r):
    return x * r[...]


def accumulate(r, ct):
    r[...] = r[...] + ct
    return 5 * ct, None


RULES = {  # a function, what its rule keeps, and the cotangents by that
    "writes": (multiply, lambda x, r: x, lambda x, ct: (2 * x * ct, None)),
    "replaces": (replace, lambda x, r: x, lambda x, ct: (5 * ct, None)),
    "reads": (read, lambda x, r: r[...], lambda v, ct: (7 * ct * v, None)),
    "returns": (read, lambda x, r: r[...], lambda v, ct: (7 * ct * v, 11.0 * ct)),
    "keeps": (double, lambda x, r: r, lambda r, ct: (5 * ct * r[...], None)),
    "accumulates": (double, lambda x, r: r, accumulate),
}


def backward_rule(ft, name):
    fun, kept, backward = RULES[name]
    f = ft.custom_vjp(fun)
    f.defvjp(lambda x, r: (fun(x, r), kept(x, r)), backward)
    return f


def differentiated(name, compiled):
    """A rule that is given references whose values depend on what is differentiated in."""
    def program(ft):
        f = backward_rule(ft, name)
        f = ft.jit(f) if compiled else f

        def made(use):
            return lambda x: (lambda r: use(x, r))(ft.new_ref(3.0 * x))

        def between(x, r):
            before = r[...]
            y = f(x, r)
            r[...] = r[...] * x
            return before + y * r[...]

        def repeated(x, r):
            step = lambda c, _: (c + 0.1 * f(c, r), None)
            return ft.lax.scan(step, x, None, length=3)[0] * r[...]

        uses = (f, lambda x, r: f(x, r) * r[...], between, repeated)
        lanes = ft.vmap(ft.grad(made(uses[1])))(ft.numpy.arange(1.0, 3.0))
        return [*[ft.grad(made(use))(2.0) for use in uses],
                *[ft.jit(ft.grad(made(use)))(2.0) for use in uses], lanes,
                ft.grad(ft.grad(made(uses[1])))(2.0)]
    return program


def given(name, compiled):
    """The same rule with references from outside, and the gradient in what is there."""
    def program(ft):
        f, r = backward_rule(ft, name), ft.new_ref(3.0)
        f = ft.jit(f) if compiled else f
        return ft.grad(f)(2.0, r), r, ft.grad(f, (0, 1))(2.0, r), r
    return program


PROGRAMS = {
    **{f"{name} {n}{' compiled' * c}": of(n, c) for name, of in (
        ("differentiated", differentiated), ("given", given)) for n in RULES for c in (0, 1)
       if (name, n) != ("given", "returns")},
    **{f"pulled {n}": pulled(f) for n, f in FUNCTIONS.items()},
    **{f"pulled compiled {n}": pulled(f, True) for n, f in FUNCTIONS.items()},
    **{f"pushed {n}": pushed(f) for n, f in FUNCTIONS.items()},
    **{f"pushed compiled {n}": pushed(f, True) for n, f in FUNCTIONS.items()},
    **{f"with tangent {n}": with_tangent(f) for n, f in FUNCTIONS.items()},
    "beside grad": beside(lambda ft: ft.grad),
    "beside value_and_grad": beside(lambda ft: ft.value_and_grad),
    "beside compiled": beside(lambda ft: lambda f: ft.jit(ft.grad(f))),
    **{f.__name__: f for f in (
        gradient_in_reference, gradient_in_tree, parts, branch, lanes, compiled_accumulation,
        gradient_of_pullback, noted_gradient, noted_in_an_input, noted_in_lanes, rule_of_value,
        rule_of_jvp, rule_of_grad, rule_of_zeros, rule_of_lanes, rule_of_reference_inside,
        rule_of_tree, rules_by_argument, rule_that_counts, rule_that_counts_in_an_input,
        rule_that_writes, rule_that_writes_inside)},
}
