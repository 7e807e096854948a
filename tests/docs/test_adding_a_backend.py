"""adding_a_backend.md: its backend computes what others do, and all that inspect know it."""

import doctest
import importlib.metadata
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import BackendError, ExportError
from functrans.lowering import backend as registry

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "adding_a_backend.md"
CODE = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(6, 4)


class EntryPoint:
    """What importlib.metadata gives of a distribution that has the module of the page."""

    def __init__(self, value):
        self.module, _, self.name = value.partition(":")

    def load(self):
        return getattr(sys.modules[self.module], self.name)


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    module = types.ModuleType("numpy_source")
    exec(compile(CODE, str(PAGE), "exec"), vars(module))
    group, name, value = re.search(r'entry-points\."(.*?)"\]\n(\w+) = "(.*?)"',
                                   PAGE.read_text()).groups()
    points = {(group, name): [EntryPoint(value)]}
    monkeypatch.setitem(sys.modules, "numpy_source", module)
    monkeypatch.setattr(importlib.metadata, "entry_points",
                        lambda group, name: points.get((group, name), []))
    monkeypatch.setattr(registry, "_backends", dict(registry._backends))
    return module


def test_it_is_short():
    assert 60 < len(CODE.splitlines()) <= 150


def test_the_session_on_the_page():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert result.attempted >= 10 and result.failed == 0


def model(x):
    """A loop, a branch, sorting, products, an update, literals and a result that is an argument."""
    last, sums = ft.lax.scan(lambda c, r: (jnp.tanh(c + r), c.sum()), x[0], x)
    picked = ft.lax.cond(x.max() > 0, jnp.sin, jnp.exp, last)
    return {"sums": sums, "picked": -picked * 2}, x.at[2].set(7.0), jnp.sort(x, axis=0), x.T @ x, x


@pytest.mark.parametrize("f", [
    model,
    ft.grad(lambda x: jnp.tanh(x @ x.T).sum()),
    ft.vmap(lambda row: ft.nn.softmax(row)),
    lambda x: ft.random.normal(ft.random.key(3), x.shape) + x,
    lambda x: jnp.linalg.svd(x)[1],
    lambda x: (jnp.asarray(x, ft.dtypes.bfloat16) * 3, x.astype(np.int32) + 1, x > 0),
    lambda x: (),
])
def test_it_computes_what_the_default_does(f):
    expected = ft.tree.leaves(ft.jit(f)(X))
    with ft.config.use_backend("numpy_source"):
        found = ft.tree.leaves(ft.jit(f)(X))
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=1e-4,
                                   atol=1e-5)


def test_named_sizes_and_what_it_refuses():
    rows = ft.ShapeDtypeStruct((ft.dim("B", min=1), 4), "float32")
    compiled = ft.lower(lambda x: jnp.exp(x) / x.shape[0], rows, target="numpy_source").compile()
    for n in (3, 6):
        np.testing.assert_allclose(compiled(X[:n]), np.exp(X[:n]) / n, rtol=1e-6)

    def looped(x):
        return ft.lax.while_loop(lambda c: c.max() < 9, lambda c: c * c, x).sum()

    with ft.config.use_backend("numpy_source"):
        with pytest.raises(BackendError, match="decide sizes as they run"):
            ft.jit(ft.grad(looped))(X + 4)
        with pytest.raises(BackendError, match="updates nothing in place"):
            ft.jit(lambda x: x + 1, donate_argnums=0, require_inplace=True)(X)


def test_explain_and_draw_show_its_lines():
    explained = ft.explain(model, X, target="numpy_source")
    report = explained.report
    assert [k.equations for k in explained.kernels] == [(n,) for n in range(len(report.kernels))]
    assert len(report.kernels) == len(report.simplified.eqns) > 5
    assert "(NumPy source)" in str(explained) and "line 0" in str(explained)
    assert all(k.source in report.text for k in explained.kernels)
    assert any(line.text.startswith("last, sums") for k in explained.kernels for line in k.lines)
    matmul = ft.explain(lambda x: x @ x.T, X, target="numpy_source").kernels[-1]
    assert matmul.flops == 2 * 6 * 6 * 4
    assert "numpy_source" not in ft.explain(model, X, target="cpu")._repr_html_()
    assert "line 0" in ft.draw(model, X, target="numpy_source").svg


def test_profile_times_its_lines():
    slow = ft.ShapeDtypeStruct((), "float32")

    def f(x):
        waited = ft.pure_callback(lambda a: (__import__("time").sleep(0.01), a)[1], slow, x.sum())
        return jnp.sin(x) + waited

    with ft.config.use_backend("numpy_source"):
        profiled = ft.profile(f, X)
    times = {step.kernel.kind: step.seconds for step in profiled.steps}
    (waited,) = [times.pop(kind) for kind in list(times) if "callback" in kind]
    assert waited > 0.009
    assert max(times.values()) < 0.005 < profiled.seconds
    assert "tells of no steps" not in str(profiled) and "(NumPy source)" in str(profiled)


def test_export_says_why_it_has_no_kernels():
    with pytest.raises(ExportError, match="functions of this process"):
        ft.export.export(model, targets=["cpu", "numpy_source"])(X)
    exported = ft.export.export(model)(X)
    with ft.config.use_backend("numpy_source"):  # the program itself travels
        np.testing.assert_allclose(ft.export.deserialize(exported.serialize()).call(X)[3], X.T @ X,
                                   rtol=1e-5)


def test_without_the_distribution_there_is_no_such_backend(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group, name: [])
    with pytest.raises(BackendError, match="no target 'numpy_source'"):
        ft.lower(model, X, target="numpy_source")
    with ft.config.use_backend("numpy_source"), pytest.raises(BackendError, match="no backend"):
        ft.jit(model)(X)
