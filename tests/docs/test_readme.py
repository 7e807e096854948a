"""README.md: its examples run, and what it says that others do not have is there."""

import doctest
import json
import re
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TEXT = README.read_text()


def results(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def test_examples():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(README), module_relative=False, optionflags=flags)
    assert result.attempted >= 7
    assert result.failed == 0


def test_it_is_short():
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1]
    assert sum(line.startswith((">>>", "...")) for line in code.splitlines()) <= 12
    assert len(re.findall(r"^- \*\*\[", TEXT, re.MULTILINE)) == 8
    assert len(TEXT.splitlines()) < 100


def test_what_it_links_to_and_shows_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT) + re.findall(r'(?:src|srcset)="(.*?)"', TEXT)
    assert len(links) > 40
    assert [name for name in links if not (ROOT / name).exists()] == []
    assert {f"notebooks/{path.name}" for path in ROOT.glob("notebooks/*.ipynb")} <= set(links)


def test_figures_are_those_of_the_results():
    rows = {row["title"]: row["seconds"] for row in results("per-sample-amd-epyc")["rows"]}
    clipped = rows["MLP 784-256-128-10, batch 256: clipped mean"]
    ours, jax, torch = (clipped[name] / clipped["batch gradient"]
                        for name in ("functrans", "jax", "torch"))
    memory = rows["MLP 784-256-128-10, batch 256: clipped mean, peak memory"]
    cpu, gpu = (results(name)["geometric_means"] for name in ("programs-amd-epyc", "programs-h100"))
    text = " ".join(TEXT.split())
    assert f"batch 256 {ours:.1f} times (JAX {jax:.0f}, PyTorch {torch:.0f})" \
        f" and {memory['functrans']:.1f} MB (JAX {memory['jax']:.0f})" in text
    assert f"a call takes {cpu['seconds']:.2f} of JAX's time on four cores and " \
        f"{gpu['seconds']:.2f} on an H100, the first call {cpu['first']:.2f} and " \
        f"{gpu['first']:.2f}" in text
    assert f"{256 * 784 * 128 * 4 / 1e6:.0f} MB, and are never made" in text
    report = str(ft.explain(norms, *map(jnp.zeros, SHAPES)))
    assert "f32[256,784,128] for reduce_sum f32[256]: never made" in report


SHAPES = (784, 128), (256, 784), (256, 128)


def norms(w, xs, ys):
    """The program of the first example."""
    gradients = ft.vmap(ft.grad(lambda w, x, y: ((jnp.tanh(x @ w) - y) ** 2).sum()),
                        in_axes=(None, 0, 0))(w, xs, ys)
    return (gradients**2).sum((1, 2))


def test_reverse_mode_through_loops():
    def until_100(x):
        return lax.while_loop(lambda c: c < 100.0, lambda c: c * x, x)

    assert float(ft.grad(until_100)(3.0)) == 5 * 3**4
    power = ft.jit(ft.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x)))
    assert float(power(2.0, 3)) == 4 * 2**3


def test_numpy_differentiates_in_float64():
    x = np.arange(3.0)
    gradient = ft.grad(lambda x: np.einsum("i,i->", np.sin(x), x))(x)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, np.sin(x) + x * np.cos(x), rtol=1e-14)
    with pytest.raises(TypeError, match="busday_count is not covered"):
        ft.jit(np.busday_count)(x, x)


def test_chunks_compose_with_grad():
    squares = ft.vmap(lambda v: v**2, chunk_size=2)
    assert ft.grad(lambda x: squares(x).sum())(jnp.arange(5.0)).tolist() == [0, 2, 4, 6, 8]


def test_custom_rules_close_over_traced_values():
    def outer(a):
        @ft.custom_jvp
        def scaled(x):
            return a * x

        scaled.defjvp(lambda primals, tangents: (scaled(*primals), a * tangents[0]))
        return scaled(a)

    assert float(ft.grad(outer)(3.0)) == 6.0
