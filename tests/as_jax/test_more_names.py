"""Names that libraries derive from or compare with, where functrans has nothing of the kind."""

import inspect

import pytest


def test_types_of_a_library(jax):
    from jax.experimental import hijax

    class Type(hijax.MutableHiType):
        read = hijax.aval_method(lambda self: self)

    hijax.register_hitype(list, lambda value: Type())
    assert issubclass(Type, jax.core.AbstractValue)
    with pytest.raises(ValueError, match="no other types"):
        hijax.HiPrimitive("push").bind([])


def test_references(jax):
    assert not isinstance(jax.numpy.ones(2), jax.Ref)
    from jax.ref import addupdate

    r = jax.new_ref(1.0)
    jax.jit(lambda x: addupdate(r, ..., x))(2.0)
    assert isinstance(r, jax.Ref) and r[...].item() == 3.0


def test_partial_values(jax):
    from jax.extend import linear_util
    from jax.interpreters import partial_eval as pe

    fun = linear_util.wrap_init(lambda x, y: [x * 2, y + 1, x * y])
    known, unknown = pe.PartialVal.known(3.0), pe.PartialVal.unknown(jax.typeof(1.0))
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(fun, [known, unknown])
    assert [o.is_known() for o in outs] == [True, False, False]
    assert outs[0].get_known() == 6.0
    assert [v.item() for v in jax.core.eval_jaxpr(jaxpr, consts, 5.0)] == [6.0, 15.0]


def test_dtypes_by_none(jax):
    import jax.numpy as jnp

    assert jax.dtypes.canonicalize_dtype(None) == jnp.float32
    assert jnp.issubdtype(None, jnp.floating)
    assert isinstance(jax.dtypes.bfloat16, type)


def test_wide_values_that_are_left_over(jax):
    """An array of 64 bits meets constants of its own dtype."""
    import jax.numpy as jnp

    with jax.enable_x64(True):
        x = jnp.arange(3.0)
    assert jax.lax.full_like(x, 1).dtype == x.dtype == "float64"
    assert jnp.asarray([[1, 0]], dtype=bool).tolist() == [[True, False]]


def test_trees_by_one_level(jax):
    from jax.tree_util import default_registry

    assert default_registry.flatten_one_level((1, [2])) == ([1, [2]], None)
    children, keys = default_registry.flatten_one_level({"b": 1, "a": 2})
    assert children == [2, 1] and list(keys) == ["a", "b"]
    assert default_registry.flatten_one_level(None) == ([], None)
    assert default_registry.flatten_one_level(3.0) is None
    leaves, tree = default_registry.flatten({"a": (1, 2)})
    assert leaves == [1, 2] and tree == jax.tree.structure({"a": (1, 2)})


def test_positions_and_names_of_parameters(jax):
    from jax._src.api_util import infer_argnums_and_argnames

    signature = inspect.signature(lambda a, b, *, c: a)
    for given, found in (((None, None), ((), ())), (((0, 1), "a"), ((0, 1), ("a",))),
                         ((1, None), ((1,), ("b",))), ((None, ("a", "c")), ((0,), ("a", "c")))):
        assert infer_argnums_and_argnames(signature, *given) == found


def test_classes_of_the_runtime(jax):
    from jaxlib import xla_client
    from jaxlib._jax import PjitFunction

    assert isinstance(jax.jit(lambda x: x), PjitFunction)
    assert isinstance(jax.devices()[0], xla_client.Device)


def test_kernels_by_hand_are_refused_where_one_is_asked_for(jax):
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    for module, name in ((pallas, "pallas_call"), (triton, "load")):
        with pytest.raises(AttributeError, match="compiles them to C and Triton"):
            getattr(module, name)


def test_axes_of_a_gradient(jax):
    assert jax.grad(lambda x: x * x, reduce_axes=())(3.0) == 6.0
    assert jax.value_and_grad(lambda x: x * x, reduce_axes=())(3.0) == (9.0, 6.0)
    for transform in (jax.grad, jax.value_and_grad):
        with pytest.raises(ValueError, match="psum"):
            transform(lambda x: x * x, reduce_axes=("i",))
