"""Backward rules that are given a reference that was made inside of what is differentiated.

The programs are of JAX or functrans: `record(jax)` is what `data/inner_references.json` holds of
JAX 0.10.2, with None for what that refuses.
"""

from .reference_programs import shown

X = 0.6
KINDS = ("reads", "writes", "reads and writes")


def rule(ft, kind):
    @ft.custom_vjp
    def f(x, r):
        return x * x

    def backward(saved, ct):
        x, r = saved
        if kind == "reads":
            return 2 * x * ct * r[...], None
        if kind == "writes":
            r[...] = ct
            return 3 * x * ct, None
        before = r[...]
        r[...] = before * 2 + ct
        return 2 * x * ct * before, None

    f.defvjp(lambda x, r: (x * x, (x, r)), backward)
    return f


def made(ft, kind):
    """Two calls with a reference that is written in between: the rules find its last value."""
    f = rule(ft, kind)

    def inside(x):
        r = ft.new_ref(0.5 * x)
        y = f(ft.numpy.sin(x), r)
        r[...] = r[...] + 0.25 * x
        return f(y + x, r) + r[...]

    return inside


def twice(ft, f, x):
    return ft.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


PLACES = {
    "plain": lambda ft, f: f,
    "unrolled": lambda ft, f: lambda x: f(f(x)),
    "jit": lambda ft, f: ft.jit(f),
    "scan": lambda ft, f: lambda x: twice(ft, f, x),
    "jit of scan": lambda ft, f: ft.jit(lambda x: twice(ft, f, x)),
    "vmap": lambda ft, f: lambda x: ft.vmap(lambda s: f(s * x))(
        ft.numpy.arange(1.0, 3.0)).sum(),
    "cond": lambda ft, f: lambda x: ft.lax.cond(x > 0, f, lambda x: x, x),
    "checkpoint": lambda ft, f: ft.checkpoint(f),
}


def both(ft):
    return ft.numpy.array([X, 0.3])


TRANSFORMS = {
    "grad": lambda ft, f: ft.grad(f)(X),
    "vjp": lambda ft, f: ft.vjp(f, X)[1](2.0)[0],
    "linearize": lambda ft, f: ft.linear_transpose(ft.linearize(f, X)[1], X)(1.0)[0],
    "jacrev": lambda ft, f: ft.jacrev(lambda x: ft.numpy.stack([f(x), x]))(X)[0],
    "vmap(grad)": lambda ft, f: ft.vmap(ft.grad(f))(both(ft)),
    "grad(vmap)": lambda ft, f: ft.grad(lambda xs: ft.vmap(f)(xs).sum())(both(ft)),
    "jit(grad)": lambda ft, f: ft.jit(ft.grad(f))(X),
}


def run(ft, kind, place, transform):
    return TRANSFORMS[transform](ft, PLACES[place](ft, made(ft, kind)))


def record(package):
    results = {}
    for kind in KINDS:
        for place in PLACES:
            for transform in TRANSFORMS:
                try:
                    found = shown(run(package, kind, place, transform))
                except Exception:
                    found = None
                results[f"{kind}, {place}, {transform}"] = found
    return results
