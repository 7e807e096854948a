"""Calls of JAX or functrans, which are given the package; `record` is for JAX.

`data/calls_of_jax.json` holds what JAX 0.10.2 answers: dtype, weak type, shape and values of each
array, or an exception by its built-in classes.
"""

import numpy as np

BUILT_IN = ("TypeError", "ValueError", "IndexError", "NotImplementedError", "AttributeError",
            "OverflowError")

CALLS = [
    *[f"jnp.{name}({args})" for name in (
        "floor_divide", "remainder", "fmod", "divmod", "left_shift", "right_shift", "power")
      for args in ("B, ~B | B", "True, True", "I, B")],
    "jnp.square(B)", "jnp.square(True)",
    "F[jax.ds(1, 2)]", "F[jax.ds(2, 2)]", "F[jax.ds(-1, 2)]", "F[jax.ds(0, 2, 2)]",
    "M[0, jax.ds(1, 2)]", "M[jnp.array([0, 1]), jax.ds(1, 2)]", "M[jax.ds(0, 2), None]",
    "M[..., jax.ds(1, 2)]", "jax.jit(lambda i: F[jax.ds(i, 2)])(2)",
    "jax.vmap(lambda i: F[jax.ds(i, 2)])(jnp.array([0, 1]))",
    "jax.grad(lambda x: (x[jax.ds(1, 2)] ** 2).sum())(F)",
    "F.at[jax.ds(1, 2)].set(9.0)", "F.at[jax.ds(2, 2)].set(9.0)",
    "jax.jit(lambda i: F.at[jax.ds(i, 2)].add(9.0))(2)",
    "jax.jit(lambda i: F.at[jax.ds(i, 2)].multiply(2.0))(1)", "M.at[0, jax.ds(1, 2)].min(0.0)",
    "F.byteswap()", "I.byteswap()", "Z.byteswap()", "I[0].byteswap()",
    "jax.jacrev(jnp.sin)(2.0)", "jax.jacrev(lambda x: F * x)(2.0)", "jax.hessian(jnp.sin)(2.0)",
    "jax.jacrev(lambda x, y: x * F + y, (0, 1))(2.0, F)", "jax.jacrev(lambda d: d['x'] * F)("
    "{'x': 2.0})",
    "jax.vmap(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0),"
    " (0, 1.0)))(I)",
    "jax.vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c + 1, 0))(I)",
    "nn.gelu(2.0)", "nn.gelu(2.0, approximate=False)", "nn.gelu(F)",
    "lax.polygamma(2.5, 1.5)", "lax.polygamma(jnp.array([1.5, 2.0, 1.0]), 2.5)",
    "lax.select_n(True, 2.0, 3.0)", "lax.select_n(1, 2.0, 3.0)", "lax.fft(F, 'FFT', (3,))",
    "jax.scipy.stats.multivariate_normal.logpdf(F, 0.0, 1.0)",
    "jax.scipy.stats.multivariate_normal.logpdf(F, F, 2.0)",
    "jax.scipy.stats.multivariate_normal.pdf(M, 1.0, 2.0)",
    "lax.expand_dims(F, (0, 0))", "lax.expand_dims(F, (0, -1))", "lax.expand_dims(F, (7,))",
    "jnp.gcd(F, 1)", "jnp.ldexp(F, 2.5)", "jnp.i0(Z)", "lax.top_k(Z, 1)",
    "nn.initializers.normal()(jax.random.key(0), (2,), int)",
]


def names(jax):
    jnp = jax.numpy
    return {"jax": jax, "jnp": jnp, "lax": jax.lax, "nn": jax.nn,
            "F": jnp.array([0.5, -1.25, 2.0]), "I": jnp.array([3, 1, 2]),
            "B": jnp.array([True, False, True]),
            "Z": jnp.array([1 + 2j, -0.5j, 3.0], "complex64"),
            "M": jnp.array([[0.3, -0.7, 1.2], [2.0, 0.0, -0.1]])}


def shown(x):
    if isinstance(x, (tuple, list)):
        return [shown(y) for y in x]
    if isinstance(x, dict):
        return {k: shown(x[k]) for k in sorted(x)}
    value = np.asarray(x)
    parts = [value.real, value.imag] if value.dtype.kind == "c" else [value]
    return {"dtype": str(x.dtype), "weak": bool(x.weak_type), "shape": list(x.shape),
            "values": [p.ravel().tolist() for p in parts]}


def answer(call, given):
    try:
        return shown(eval(call, dict(given)))
    except Exception as error:
        return [c.__name__ for c in type(error).__mro__ if c.__name__ in BUILT_IN]


def record(jax):
    given = names(jax)
    return {call: answer(call, given) for call in CALLS}
