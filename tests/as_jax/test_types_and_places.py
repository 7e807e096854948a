"""What libraries of modules ask arrays, types and functions about places, trees and keys."""

import numpy as np
import pytest

from functrans import Array, as_jax, random
from functrans.core.avals import ShapedArray


def test_types_take_and_have_a_sharding(jax):
    x = jax.numpy.ones((2, 3))
    one_less = x.aval.sharding.update(spec=jax.P(*x.aval.sharding.spec[1:]))
    made = jax.core.ShapedArray(shape=(3,), dtype="float32", sharding=one_less, vma=frozenset())
    assert tuple(x.aval.sharding.spec) == (None, None) and tuple(one_less.spec) == (None,)
    assert made == jax.eval_shape(lambda v: v[0], x).aval
    assert jax.jit(lambda v: jax.random.bernoulli(
        jax.random.key(0), 0.5, v.shape, out_sharding=jax.typeof(v).sharding))(x).shape == (2, 3)


def test_sharding_of_a_type_is_told(jax):
    place = jax.typeof(jax.numpy.ones((2, 3))).sharding
    assert place.is_fully_replicated and place.num_devices == 0
    along = place.update(spec=jax.P("i"), mesh=jax.sharding.AbstractMesh((2,), ("i",)))
    assert not along.is_fully_replicated and along.num_devices == 2
    assert along.is_equivalent_to(along.update(spec=jax.P("i", None)), 2)
    assert not along.is_equivalent_to(along.with_memory_kind("device"), 2)
    assert not along.is_equivalent_to(place, 2)


def test_a_jitted_function_is_known_by_its_globals(jax):
    jitted = jax.jit(lambda x: x)
    assert "api_boundary" in jitted.__globals__ and jitted.__globals__["np"] is np
    as_jax.uninstall()
    assert not hasattr(jitted, "__globals__")
    as_jax.install()


def test_types_are_as_before_afterwards(jax):
    as_jax.uninstall()
    with pytest.raises(TypeError, match="sharding"):
        ShapedArray((), np.dtype("float32"), sharding=None)
    assert type(random.key(0).dtype.type.__name__) is str
    assert Array._repr_html_ is not None
    as_jax.install()


def test_results_are_placed(jax):
    mesh = jax.make_mesh((1,), ("i",))
    place = jax.sharding.NamedSharding(mesh, jax.P("i"))
    x = jax.numpy.arange(4.0, out_sharding=place)
    with jax.set_mesh(mesh):
        assert jax.numpy.dot(x, x, out_sharding=jax.P()).item() == 14.0
        abstract = jax.sharding.get_abstract_mesh()
        assert jax.sharding.NamedSharding(abstract, jax.P("i")) == place
        kinds = abstract.are_all_axes_auto, mesh.are_all_axes_explicit, mesh.are_all_axes_manual
        assert kinds == (True, False, False)
    with pytest.raises(ValueError, match="the mesh is AbstractMesh"):
        jax.sharding.NamedSharding(abstract, jax.P("i"))
    assert jax.numpy.einsum("i,i->", x, x, _dot_general=jax.lax.dot_general).item() == 14.0
    assert jax.vmap(lambda v: v + 1, spmd_axis_name="i")(x).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_classes_of_nodes_are_told(jax):
    from jax._src.tree_util import _registry

    @jax.tree_util.register_pytree_node_class
    class Node:
        def tree_flatten(self):
            return (1, 2), "aux"

        @classmethod
        def tree_unflatten(cls, aux, children):
            return aux, children

    assert all(cls in _registry for cls in (Node, list, dict, tuple, type(None)))
    assert int not in _registry and Node() not in _registry
    for tree in ({"b": 1, "a": (2, None)}, (1, [2]), [3]):
        children, aux = _registry[type(tree)].to_iter(tree)
        assert _registry[type(tree)].from_iter(aux, children) == tree
        assert hash(aux) == hash(aux)
    assert _registry[Node].from_iter(*_registry[Node].to_iter(Node())[::-1]) == ("aux", [1, 2])
    with pytest.raises(KeyError):
        _registry[int]


def test_keys_are_known_by_the_name_of_jax(jax):
    for kind in ("threefry2x32", "philox"):
        dtype = jax.random.key(0, impl=kind).dtype
        name = dtype.type.__name__
        assert name == "prng_key" and name == str(dtype) and {str(dtype): 1}[name] == 1
        assert name != "float32" and (name != "prng_key") is False


def test_arrays_do_not_draw_themselves(jax):
    assert not hasattr(jax.numpy.ones(2), "_repr_html_")


def test_what_no_unknown_argument_reaches_is_evaluated(jax):
    """Parameters that are made within a loop, from a key, are the same in each step."""
    from jax.extend import linear_util
    from jax.interpreters import partial_eval as pe

    key, scale = jax.random.key(0), jax.numpy.float32(2.0)

    @jax.jit
    def layer(x):
        weights = jax.random.normal(key, (3,)) * scale
        return weights, x * weights

    def body(x):
        weights, y = layer(x)
        return [weights, y, weights + 1, 5.0]

    x = jax.core.ShapedArray((3,), "float32")
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(
        linear_util.wrap_init(body), [pe.PartialVal.unknown(x)])
    expected = jax.random.normal(key, (3,)) * 2
    assert [p.is_known() for p in outs] == [True, False, True, True]
    np.testing.assert_array_equal(outs[0].get_known(), expected)
    np.testing.assert_array_equal(outs[2].get_known(), expected + 1)
    assert outs[1].aval == x and len(jaxpr.outvars) == 1 and outs[3].get_known() == 5.0
    found, = jax.core.eval_jaxpr(jaxpr, consts, jax.numpy.ones(3))
    np.testing.assert_allclose(found, expected, 1e-6)
    outs = pe.trace_to_jaxpr_nounits(linear_util.wrap_init(body), [pe.PartialVal.unknown(x)],
                                     instantiate=True)[1]
    assert not any(p.is_known() for p in outs)
