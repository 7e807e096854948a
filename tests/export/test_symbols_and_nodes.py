"""Symbolic shapes by JAX's names, and classes of users in exported programs."""

import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import functrans as ft
from functrans import export
from functrans.core import max_dim, min_dim
from functrans.errors import ArgumentError, ExportError, RegistrationError


class State(NamedTuple):
    position: object
    speed: object


export.register_namedtuple_serialization(State, serialized_name="tests.State")


@ft.tree_util.register_pytree_node_class
class Scaled:
    def __init__(self, value, scale):
        self.value, self.scale = value, scale

    def tree_flatten(self):
        return (self.value,), self.scale

    @classmethod
    def tree_unflatten(cls, scale, children):
        return cls(*children, scale)


export.register_pytree_node_serialization(
    Scaled, serialized_name="tests.Scaled", serialize_auxdata=lambda s: str(s).encode(),
    deserialize_auxdata=lambda data: int(data.decode()))


def exported():
    def step(state, factor):
        return Scaled(state._replace(position=state.position + factor.value * factor.scale), 7)

    return export.export(step)(State(np.zeros(2), 1.0), Scaled(1.0, 3))


def test_classes_go_through_files():
    loaded = export.deserialize(exported().serialize())
    out = loaded.call(State(np.ones(2), 1.0), Scaled(2.0, 3))
    assert isinstance(out, Scaled) and out.scale == 7 and isinstance(out.value, State)
    np.testing.assert_array_equal(out.value.position, 7.0)
    with pytest.raises(ft.errors.TreeMismatchError):
        loaded.call(State(np.ones(2), 1.0), Scaled(2.0, 4))


def test_who_does_not_know_the_class_is_told(tmp_path):
    export.save(exported(), tmp_path / "step.ftx")
    code = ("import functrans as ft, sys\n"
            "try: ft.export.load(sys.argv[1])\n"
            "except ft.errors.ExportError as error: print(error)")
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path / "step.ftx")], check=True,
                          text=True, capture_output=True).stdout
    assert "'tests.S" in told and "before loading" in told


def test_damaged_nodes_are_refused():
    data = exported().serialize()
    from_children = export.nodes.node_by_name("tests.State").make
    with pytest.raises(TypeError):
        from_children([1], b"")
    with pytest.raises(ExportError, match="parts"):
        export.trees.read_tree(["node", "tests.State", b"", "*"])
    with pytest.raises(ExportError, match="no name"):
        export.trees.read_tree(["node", 3, b""])
    with pytest.raises(ExportError):
        export.deserialize(data.replace(b"tests.State", b"tests.Stare"))


def test_registration_is_checked():
    with pytest.raises(RegistrationError, match="already"):
        export.register_namedtuple_serialization(State, serialized_name="another")
    class Other(NamedTuple):
        x: float

    with pytest.raises(RegistrationError, match=r"tests\.State"):
        export.register_namedtuple_serialization(Other, serialized_name="tests.State")
    with pytest.raises(RegistrationError, match="named tuples"):
        export.register_namedtuple_serialization(dict, serialized_name="x")
    with pytest.raises(RegistrationError, match="no pytree node"):
        export.register_pytree_node_serialization(
            type("Plain", (), {}), serialized_name="y", serialize_auxdata=bytes,
            deserialize_auxdata=bytes)


@pytest.mark.parametrize("text, like, expected", [
    ("a, b", None, "a b"), ("(a, 2*b + 1, 3)", None, "a 2*b+1 3"), ("a,", None, "a"),
    ("", None, ""), ("a, _", (2, 5), "a 5"), ("..., a", (2, 3, 4), "2 3 a"), (None, (2, 3), "2 3"),
    ("a^2, (a+1)*b", None, "a**2 (a+1)*b"),
    ("floordiv(a, 2), mod(a, 2)", None, "a//2 a%2"),
])
def test_shapes_in_text(text, like, expected):
    found = export.symbolic_shape(text, like=like)
    wanted = [n if n.isdigit() else str(export.symbolic_shape(n)[0]) for n in expected.split()]
    assert [str(n) for n in found] == wanted


def test_constraints_are_bounds():
    a, b, c, d = export.symbolic_shape(
        "a, b, c, max(a, 3)",
        constraints=["a >= 8", "a <= 64", "mod(b, 4) == 0", "c == 2*a"])
    assert a >= 8 and not a > 64 and b % 4 == 0 and str(c) == "2*a" and d == a
    assert a >= 1 and export.symbolic_shape("n")[0] >= 1
    exported_ = export.export(lambda x: x.sum())(ft.ShapeDtypeStruct((a,), "float32"))
    assert exported_.call(np.ones(8, np.float32)).item() == 8.0
    with pytest.raises(ArgumentError, match="min=8"):
        exported_.call(np.ones(7, np.float32))


def test_largest_and_smallest_sizes():
    b = ft.dim("b")
    assert max_dim(2, 5) == 5 and min_dim(b, b) == b
    larger = max_dim(b, 3)
    assert [larger.substitute({"b": n}) for n in (2, 3, 4)] == [3, 3, 4]
    both = export.export(lambda x: ft.numpy.zeros((max_dim(x.shape[0], 3),)))(
        ft.ShapeDtypeStruct((export.symbolic_shape("n")[0],), "float32"))
    again = export.deserialize(both.serialize())
    assert [again.call(np.ones(n, np.float32)).shape for n in (2, 5)] == [(3,), (5,)]


def test_arguments_with_symbolic_shapes():
    args = ({"w": np.ones((2, 3), np.float32), "b": np.arange(3)}, 1.5)
    specs = export.symbolic_args_specs(args, ({"w": "_, n", "b": "n"}, None))
    assert [str(s.aval) for s in ft.tree.leaves(specs)] == ["i64[n]", "f32[2,n]", "f32[]"]
    same = export.symbolic_args_specs(args[0], "...", constraints=["n >= 2"])
    assert same["w"].shape == (2, 3)


@pytest.mark.parametrize("call", [
    lambda: export.symbolic_shape("a, _"), lambda: export.symbolic_shape("a, ..."),
    lambda: export.symbolic_shape("a", like=(1, 2)), lambda: export.symbolic_shape("a b"),
    lambda: export.symbolic_shape("f(a, 2)"),
    lambda: export.symbolic_shape("a", constraints="a >= 2"),
    lambda: export.symbolic_shape("a", constraints=["a == 2*b", "b == a + 1"]),
    lambda: export.SymbolicScope(["a + b >= 3"]), lambda: export.SymbolicScope(["a >="]),
    lambda: export.SymbolicScope(["1 < a < 3"]),
    lambda: export.symbolic_shape("a", constraints=["a >= 2"], scope=export.SymbolicScope()),
])
def test_what_is_no_shape(call):
    with pytest.raises(ArgumentError):
        call()


def test_platforms_and_versions():
    assert export.default_export_platform() == "cpu"
    assert export.minimum_supported_calling_convention_version \
        <= exported().format_version <= export.maximum_supported_calling_convention_version
    assert export.is_symbolic_dim(ft.dim("b") + 1) and not export.is_symbolic_dim(3)
