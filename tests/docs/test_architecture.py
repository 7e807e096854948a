"""The examples in architecture.md are run: the primitive through every law, the transform."""

import inspect
import re
import types
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans.core.primitive import Primitive
from tests.laws import test_primitive_laws as laws
from tests.laws.primitives import Case, is_smooth

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "architecture.md"


def code_under(heading):
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]


def run(heading):
    module = types.ModuleType("functrans.primitives.example")
    exec(compile(code_under(heading), str(PAGE), "exec"), vars(module))
    return module


PRIMITIVE = run("Adding a primitive")
CASES = [Case(p, tuple(np.asarray(a) for a in s.args), dict(s.params), i)
         for p in vars(PRIMITIVE).values() if isinstance(p, Primitive)
         for i, s in enumerate(p.samples())]
LAWS = {name: law for name, law in vars(laws).items() if name.startswith("test_")
        and list(inspect.signature(law).parameters) == ["case"]}


def cases_of(law):
    """The cases of the example that the law would get: by the list that it is parametrized with."""
    (mark,) = [m for m in law.pytestmark if m.name == "parametrize"]
    if mark.args[1] is laws.CASES:
        return CASES
    smooth = [c.wide() for c in CASES if is_smooth(c)]
    return smooth if mark.args[1] is laws.SMOOTH else []


def test_the_primitive_is_short():
    assert len(code_under("Adding a primitive").splitlines()) < 30


def test_every_kind_of_law_is_applied():
    assert len(CASES) >= 2
    applied = {name for name, law in LAWS.items() if cases_of(law)}
    assert {"test_staged_is_eager", "test_vmap_is_a_loop",
            "test_derivatives_are_finite_differences",
            "test_forward_and_reverse_are_adjoint"} <= applied


@pytest.mark.parametrize("name", LAWS)
def test_the_primitive_obeys(name):
    for case in cases_of(LAWS[name]):
        LAWS[name](case)


def test_the_primitive_is_what_it_says():
    x = ft.numpy.array([-200.0, 0.0, 200.0])
    np.testing.assert_allclose(PRIMITIVE.softplus(x), [0.0, np.log(2.0), 200.0], rtol=1e-6)
    np.testing.assert_allclose(ft.vmap(ft.grad(PRIMITIVE.softplus))(x), [0.0, 0.5, 1.0], atol=1e-6)


def test_the_transform_works_and_composes():
    depends = run("Adding a transform").depends
    assert depends(lambda x: (x + 1, ft.numpy.sin(2.0), {"a": x * 0}))(1.0) == \
        (True, False, {"a": True})
    assert depends(ft.grad(lambda x: x ** 3))(2.0) is True
    assert depends(ft.grad(lambda x: 3 * x))(2.0) is False
    assert depends(ft.jit(lambda x: (x * 2, ft.numpy.zeros(2))))(1.0) == (True, True)

    def inside(x):
        assert depends(lambda y: (y * x, x))(x) == (True, False)
        return x ** 2

    assert float(ft.grad(inside)(3.0)) == 6.0
    np.testing.assert_allclose(ft.vmap(inside)(np.arange(3.0)), [0.0, 1.0, 4.0])
    assert float(ft.jit(inside)(3.0)) == 9.0


def test_the_files_that_the_page_names_exist():
    text = re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.DOTALL)
    root = PAGE.parents[2]
    places = [root, root / "functrans", root / "functrans/transforms", root / "lowering",
              root / "functrans/core"]
    for name in re.findall(r"`([\w/]+(?:\.py|/))`", text):
        assert any((place / name).exists() for place in places), name
