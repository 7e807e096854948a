"""Names that libraries derive from or compare with, where functrans has nothing of the kind."""

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
    with pytest.raises(ValueError, match="immutable"):
        jax.new_ref(1.0)


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
