"""The walks of a program that benchmarks/walks.py counts: the second call enters no Python."""

import numpy as np
import walks

import functrans as ft

X = np.ones((8, 8), np.float32)


def gradient():
    return ft.jit(ft.grad(lambda x: ft.numpy.tanh(x @ x).sum()))


def test_the_second_call_is_zero_switches():
    compiled = gradient()
    with walks.Walk() as first:
        compiled(X)
    assert first.files > 20 and first.switches > first.files  # it does see what is entered
    second = walks.second_call(compiled, X)
    assert (second.files, second.switches) == (0, 0)


def test_calls_within_a_file_and_returns_are_no_switches():
    a, b = [str(walks.ROOT / "functrans" / name) for name in ("a.py", "b.py")]
    names = {}
    for path, text in ((b, "def leaf(): return [n for n in (1, 2)]\ndef twice(): leaf(); leaf()"),
                       (a, "def both(): twice(); twice()\ndef outer(): both(); leaf()")):
        exec(compile(text, path, "exec"), names)
    with walks.Walk() as walk:
        names["outer"]()
    assert walk.entries == {"functrans/a.py": 2, "functrans/b.py": 7}
    assert walk.switches == 2


def test_sources_are_counted():
    path = walks.ROOT / "functrans" / "lax" / "x.py"
    tree = walks.ast.parse("from functrans.core import dims, jaxpr\nimport functrans.lax.loops\n"
                           "def f():\n    from functrans.core.dims import Dim\n    import numpy")
    assert walks.edges({path: tree}) == {("functrans/lax", "functrans/core"): 2}
    tree = walks.ast.parse("class A: pass\nclass B:\n    class A: pass")
    path = walks.ROOT / "lowering" / "x.py"
    assert walks.repeated_classes({path: tree}) == {"A": ["lowering/x.py", "lowering/x.py"]}


def test_a_class_name_stands_for_one_thing():
    trees = {path: walks.ast.parse(path.read_text()) for _, path in walks.modules()}
    assert walks.repeated_classes(trees) == {}
