"""Fingerprints of programs: what decides the compiled program does, and nothing else."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.lowering.c.backend import options_of
from functrans.lowering.store import fingerprint as module
from functrans.lowering.store.fingerprint import constant_key, fingerprint
from functrans.primitives.base import Constant, constant_p

X = np.ones((4, 6), np.float32)


def text(fun, *args):
    found = fingerprint(ft.jit(fun).lower(*args).jaxpr)
    return None if found is None else found.text


def branches(x):
    return ft.lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, x)


def looped(x, factor=2.0):
    return ft.lax.scan(lambda c, row: (c * factor + row, c.sum()), x[0], x)


@ft.custom_vjp
def ruled(x):
    return jnp.sin(x)


ruled.defvjp(lambda x: (ruled(x), x), lambda x, ct: (ct * jnp.cos(x),))

PROGRAMS = [
    lambda x: jnp.tanh(x) * 2 + 1, lambda x: x.at[1].set(0.0), branches, looped, ft.vmap(ruled),
    ft.grad(lambda x: ruled(x).sum()), lambda x: ft.nn.softmax(x @ x.T), lambda x: ft.nn.gelu(x),
    lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)), lambda x: jnp.sort(x, 0),
    lambda x: ft.checkpoint(jnp.cos)(x), lambda x: ft.random.normal(ft.random.key(1), x.shape),
    lambda x: jnp.fft.fft(x), lambda x: ft.jit(jnp.cumsum)(x), lambda x: x.astype("bfloat16"),
]


@pytest.mark.parametrize("fun", PROGRAMS)
def test_programs_have_fingerprints(fun):
    assert text(fun, X) is not None
    assert text(fun, X) == text(lambda y: fun(y), X)


def test_programs_differ():
    texts = [text(fun, X) for fun in PROGRAMS]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("fun, args", [
    (lambda x: x * 2.0000003, (X,)),
    (lambda x: 2 * x, (X.astype(np.float64),)),
    (lambda x: 2 * x, (X[:3],)),
    (lambda x: x + x, (X,)),
])
def test_every_difference_shows(fun, args):
    other = text(lambda x: x * 2.0, X)
    assert text(fun, *args) != other


def test_bits_of_literals_show():
    zero, minus = text(lambda x: jnp.maximum(x, 0.0), X), text(lambda x: jnp.maximum(x, -0.0), X)
    assert zero != minus


def test_parameters_show():
    assert text(lambda x: x.sum(0), X) != text(lambda x: x.sum(1), X)
    assert text(looped, X) != text(lambda x: looped(x, 3.0), X)
    assert text(lambda x: x[:2], X) != text(lambda x: x[1:3], X)
    rows = np.array([0, 1])
    assert text(lambda x, i: x.at[i].get(mode="clip"), X, rows) \
        != text(lambda x, i: x.at[i].get(mode="fill"), X, rows)


def test_the_order_of_operands_and_results_shows():
    assert text(lambda x, y: x - y, X, X) != text(lambda x, y: y - x, X, X)
    assert text(lambda x: (x + 1, x + 2), X) != text(lambda x: (x + 1, x + 2)[::-1], X)


def test_symbolic_sizes_are_no_strings():
    n = ft.Dim("n")
    one = fingerprint(Jaxpr((), (x := Var(ShapedArray((n,), np.dtype("f4"))),), (), (x,)))
    assert "Dim('n')" in one.text


def test_names_and_lines_do_not_show():
    def one(x):
        return x * 2

    def two(other):

        return other * 2

    assert text(one, X) == text(two, X)


def program_with_constant(value):
    out = Var(ShapedArray(value.shape, value.dtype))
    return Jaxpr((), (), (Equation(constant_p, (), (out,), {"value": Constant(value)}),), (out,))


def test_the_content_of_constants_shows():
    def told(value):
        return fingerprint(program_with_constant(value))

    x = np.arange(6.0).reshape(2, 3)
    assert told(x).text == told(x.copy()).text == told(np.asfortranarray(x)).text
    assert len({told(v).text for v in (x, -x, x + 1e-16, x.astype("f4"), x.reshape(3, 2))}) == 5
    ((key, value),) = told(x).constants.items()
    assert key == constant_key(x) and value is x


def test_python_functions_have_no_fingerprint():
    def called_back(x):
        return ft.pure_callback(np.sin, ft.ShapeDtypeStruct(x.shape, x.dtype), x)

    assert text(called_back, X) is None
    assert text(lambda x: ft.lax.scan(lambda c, r: (called_back(c), r), x[0], x), X) is None


def test_foreign_values_have_no_fingerprint():
    x = Var(ShapedArray((2,), np.dtype("f4")))
    sin = ft.jit(jnp.sin).lower(np.ones(2, "f")).jaxpr.eqns[0].primitive
    foreign = type("Sin", (type(sin),), {"__module__": "elsewhere"})()
    for eqn in (Equation(foreign, (x,), (x,), {}), Equation(sin, (x,), (x,), {"how": object()}),
                Equation(sin, (Literal(object(), x.aval),), (x,), {})):
        assert fingerprint(Jaxpr((), (x,), (eqn,), (x,))) is None
    assert fingerprint(Jaxpr((), (x,), (Equation(sin, (x,), (x,), {}),), (x,))) is not None


def test_large_constants_are_not_hashed(monkeypatch):
    monkeypatch.setattr(module, "MAX_CONSTANT_BYTES", 100)
    assert fingerprint(program_with_constant(np.ones(12))) is not None
    assert fingerprint(program_with_constant(np.ones(13))) is None


def test_options_are_part_of_the_key(monkeypatch):
    monkeypatch.setattr(module, "compiler_version", lambda: "1")
    found = fingerprint(ft.jit(jnp.sin).lower(X).jaxpr)

    def key(donated=frozenset(), require_inplace=False):
        return found.key(*options_of(donated, require_inplace))

    first = key()
    assert key() == first
    assert len({first, key(frozenset([0])), key(require_inplace=True)}) == 3
    with ft.default_dtypes("float64", "int64"):
        assert key() != first
    monkeypatch.setenv("CC", "other")
    assert key() != first
    monkeypatch.delenv("CC")
    monkeypatch.setattr(module, "compiler_version", lambda: "2")
    assert key() != first
    monkeypatch.setattr(module, "compiler_version", lambda: None)
    assert key() is None


def test_a_changed_compiler_has_another_version(monkeypatch, tmp_path):
    version = module.compiler_version.__wrapped__
    for name in ("config", "primitives", "lowering"):
        file = tmp_path / name / "__init__.py"
        file.parent.mkdir()
        file.write_text("")
        os.utime(file, (1e9, 1e9))
        monkeypatch.setattr(getattr(module, name), "__file__", str(file))
    monkeypatch.setattr(module, "_process_began", lambda: 2e18)
    first = version()
    assert version() == first
    os.utime(file, (1e9, 1e9 + 1))
    assert version() != first
    (tmp_path / "lowering" / "math").mkdir()
    (tmp_path / "lowering" / "math" / "exp.c").write_text("exp")
    assert version() not in (first, None)
    monkeypatch.setattr(module, "_process_began", lambda: 1.1e9)
    assert version() is None


def test_an_installed_compiler_is_told_by_its_list_of_files(monkeypatch, tmp_path):
    version = module.compiler_version.__wrapped__
    for name in ("core/config.py", "primitives/__init__.py", "lowering/__init__.py"):
        file = tmp_path / "functrans" / name
        file.parent.mkdir(parents=True)
        file.write_text("")
        monkeypatch.setattr(getattr(module, file.stem.strip("_") if file.stem == "config"
                                    else file.parent.name), "__file__", str(file))
    monkeypatch.setattr(module, "_process_began", lambda: 2e18)
    source = version()
    record = tmp_path / f"functrans-{module.__version__}.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("functrans/lowering/__init__.py,sha256=a,0\n")
    os.utime(record, (1e9, 1e9))
    first = version()
    assert first != source
    os.utime(file, (1e9, 1e9 + 1))  # its time is not what is looked at
    assert version() == first
    record.write_text("functrans/lowering/__init__.py,sha256=b,0\n")
    os.utime(record, (1e9, 1e9))
    assert version() not in (first, None)
    monkeypatch.setattr(module, "_process_began", lambda: 0.9e9)
    assert version() is None


def test_a_process_began_before_now():
    code = """
        import time
        before = time.time()
        from functrans.lowering.store.fingerprint import _process_began
        print(before - _process_began())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True,
                          text=True, check=True)
    assert -0.1 < float(done.stdout) < 10
