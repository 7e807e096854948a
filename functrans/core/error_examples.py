"""Examples of the exceptions, by their names: a program that raises each, as text."""

from __future__ import annotations

from typing import Final

from functrans.core.example_text import parsed

__all__ = ["EXAMPLES"]

EXAMPLES: Final = parsed('''
ArgumentError
>>> jnp.linspace(0.0, 1.0, -1)
Traceback (most recent call last):
...
functrans.core.errors.ArgumentError: functrans.numpy.linspace: num=-1 is negative...

AxisNameError
>>> ft.vmap(lambda x: ft.lax.psum(x, "j"), axis_name="i")(jnp.ones(3))
Traceback (most recent call last):
...
functrans.core.errors.AxisNameError: no axis is called 'j' here (bound: 'i')...

AxisSizeError
>>> ft.vmap(jnp.dot)(jnp.ones((2, 4)), jnp.ones((3, 4)))
Traceback (most recent call last):
...
functrans.core.errors.AxisSizeError: vmap got inconsistent sizes for array axes to be mapped...

BackendError
>>> ft.devices("tpu")
Traceback (most recent call last):
...
functrans.core.errors.BackendError: there is no device 'tpu' here...

BranchTypeError
>>> ft.jit(lambda c: ft.lax.cond(c, lambda: 1.0, lambda: jnp.ones(3)))(True)
Traceback (most recent call last):
...
functrans.core.errors.BranchTypeError: cond: ...

CallbackError
>>> declared = ft.ShapeDtypeStruct((), "float32")
>>> ft.pure_callback(lambda x: np.zeros(3), declared, 1.0)
Traceback (most recent call last):
...
functrans.core.errors.CallbackError: the callback <lambda> returned float64 of shape (3,)...

CarryTypeError
>>> ft.lax.fori_loop(0, 3, lambda i, x: jnp.append(x, 1.0), jnp.ones(2))
Traceback (most recent call last):
...
functrans.core.errors.CarryTypeError: fori_loop: <lambda> changes the type of what it carries...

CheckError
>>> try:
...     ft.checked(jnp.log)(0.0)
... except ft.errors.CheckError as error:
...     type(error).__name__
'NotFiniteError'

CollectiveError
>>> from functrans.sharding import P
>>> def f(x):                        # only the second device comes to the sum
...     return ft.lax.cond(x[0] > 1.0, lambda: ft.lax.psum(x, "i"), lambda: x)
>>> with ft.config.cpu_devices(2):
...     mesh = ft.make_mesh((2,), ("i",), devices=ft.devices("cpu"))
...     ft.shard_map(f, mesh, P("i"), P("i"), check_vma=False)(jnp.arange(4.0))
Traceback (most recent call last):
...
functrans.core.errors.CollectiveError: cpu:1 waits for cpu:0 in a collective...

ConcretizationError
>>> ft.jit(lambda x: x if x > 0 else -x)(1.0)
Traceback (most recent call last):
...
functrans.core.errors.ConcretizationError: bool() of a traced bool[] needs its value...

CustomRuleError
>>> ft.grad(ft.custom_vjp(lambda x: x))(1.0)
Traceback (most recent call last):
...
functrans.core.errors.CustomRuleError: the custom_vjp function <lambda> has no rules...

DTypeError
>>> jnp.zeros(2, "float33")
Traceback (most recent call last):
...
functrans.core.errors.DTypeError: no dtype can be told from 'float33', of type str...

DefectError
>>> try:
...     y = ft.jit(jnp.sin)(jnp.ones(3))
... except ft.errors.DefectError as error:
...     print(error.report)          # the program and the versions, for whoever mends it

DeviceError
>>> try:
...     y = ft.block_until_ready(ft.jit(jnp.sin)(jnp.ones(3)))
... except ft.errors.DeviceError as error:
...     print(error)                 # what the driver said, and the kernels that were running

DeviceMemoryError
>>> loss = lambda x: jnp.sin(x).sum()
>>> xs = jnp.ones((8, 3))
>>> try:
...     y = ft.vmap(loss)(xs)
... except ft.errors.DeviceMemoryError:
...     y = ft.vmap(loss, chunk_size=2)(xs)

DonatedArrayError
>>> x = jnp.ones(4)
>>> y = ft.jit(lambda x: x + 1, donate_argnums=0)(x)
>>> x + 1
Traceback (most recent call last):
...
functrans.core.errors.DonatedArrayError: the data of this f32[4] is gone...

ExportError
>>> ft.export.deserialize(b"no program")
Traceback (most recent call last):
...
functrans.core.errors.ExportError: the exported program cannot be read: ...

FailedCheckError
>>> @ft.jit
... def root(x):
...     ft.check(x >= 0, "no root of {x}", x=x)
...     return jnp.sqrt(x)
>>> root(-1.0)
Traceback (most recent call last):
...
functrans.core.errors.FailedCheckError: no root of -1.0...

ImmutableArrayError
>>> x = jnp.ones(3)
>>> x[0] = 2.0
Traceback (most recent call last):
...
functrans.core.errors.ImmutableArrayError: x[0] = ... cannot change an array in place.
  ...
  Fix: x = x.at[0].set(2.0)

IndexingError
>>> jnp.ones(3)[7]
Traceback (most recent call last):
...
functrans.core.errors.IndexingError: index 7 is out of bounds for axis 0 of size 3...

IntegerGradError
>>> ft.grad(lambda n: n * 2.0)(3)
Traceback (most recent call last):
...
functrans.core.errors.IntegerGradError: grad of an argument of dtype int32...

IntegerOverflowError
>>> jnp.ones(3, "int8") + 300
Traceback (most recent call last):
...
functrans.core.errors.IntegerOverflowError: the Python int 300 does not fit int8...

JaxprError
>>> program = ft.make_jaxpr(jnp.sin)(1.0).jaxpr
>>> broken = program.replace(outvars=[ft.extend.core.Var(program.outvars[0].aval)])
>>> ft.extend.core.check_jaxpr(broken)
Traceback (most recent call last):
...
functrans.core.errors.JaxprError: an output of type f32[] is not defined...

KeyReuseError
>>> key = ft.random.key(0)
>>> with ft.debug_key_reuse(True):
...     ft.random.normal(key), ft.random.uniform(key)
Traceback (most recent call last):
...
functrans.core.errors.KeyReuseError: ft.random.uniform got a key that was used before...

KeyTypeError
>>> ft.random.normal(0)
Traceback (most recent call last):
...
functrans.core.errors.KeyTypeError: ft.random.normal takes a key and got int...

LeakedTracerError
>>> kept = []
>>> _ = ft.jit(lambda x: kept.append(x) or x)(1.0)
>>> kept[0] + 1
Traceback (most recent call last):
...
functrans.core.errors.LeakedTracerError: add received a traced f32[] that escaped...

MissingNameError
>>> jnp.unsqueeze
Traceback (most recent call last):
...
functrans.core.errors.MissingNameError: module 'functrans.numpy' has no attribute 'unsqueeze'...

MissingRuleError
>>> double = ft.extend.core.Primitive("double")
>>> double.bind(jnp.ones(3))
Traceback (most recent call last):
...
functrans.core.errors.MissingRuleError: the primitive double has no ...

NonArrayError
>>> jnp.sin("1.0")
Traceback (most recent call last):
...
functrans.core.errors.NonArrayError: functrans.numpy.sin takes arrays and numbers, and got a str...

NonScalarGradError
>>> ft.grad(lambda x: x * 2)(jnp.ones(3))
Traceback (most recent call last):
...
functrans.core.errors.NonScalarGradError: grad needs a function that returns one scalar...

NotCoveredError
>>> ft.jit(lambda x: np.busday_count(x, x))(jnp.ones(3))
Traceback (most recent call last):
...
functrans.core.errors.NotCoveredError: np.busday_count is not covered by functrans...

NotDifferentiableError
>>> ft.grad(lambda x: ft.pure_callback(np.sin, x, x))(1.0)
Traceback (most recent call last):
...
functrans.core.errors.NotDifferentiableError: pure_callback has no derivative...

NotFiniteError
>>> ft.checked(jnp.log)(0.0)
Traceback (most recent call last):
...
functrans.core.errors.NotFiniteError: log gave an infinity...

OutOfBoundsError
>>> ft.checked(lambda x, i: x[i])(jnp.ones(3), 5)
Traceback (most recent call last):
...
functrans.core.errors.OutOfBoundsError: index 5 is out of bounds for axis 0 of size 3...

OutOfMemoryError
>>> jnp.ones((2**20, 2**20, 2**10))
Traceback (most recent call last):
...
functrans.core.errors.OutOfMemoryError: out of memory: Unable to allocate 4.00 PiB...

PromotionError
>>> jnp.ones(1, "float8_e4m3fn") + jnp.ones(1, "float8_e5m2")
Traceback (most recent call last):
...
functrans.core.errors.PromotionError: the dtypes float8_e4m3fn, float8_e5m2 have no common dtype...

RegistrationError
>>> ft.tree_util.register_pytree_node(dict, list, dict)
Traceback (most recent call last):
...
functrans.core.errors.RegistrationError: dict cannot be registered as a pytree node...

ShapeError
>>> jnp.ones(2) + jnp.ones(3)
Traceback (most recent call last):
...
functrans.core.errors.ShapeError: functrans.numpy.add: shapes (2,), (3,) do not broadcast...

ShardingError
>>> with ft.config.cpu_devices(2):
...     mesh = ft.make_mesh((2,), ("x",), devices=ft.devices("cpu"))
...     ft.device_put(jnp.ones(3), ft.sharding.NamedSharding(mesh, ft.P("x")))
Traceback (most recent call last):
...
functrans.core.errors.ShardingError: ...

StaticArgumentError
>>> ft.jit(lambda x, n: x, static_argnums=1)(1.0, [1])
Traceback (most recent call last):
...
functrans.core.errors.StaticArgumentError: jit of <lambda>: the static argument 1 ('n') is not...

TreeMismatchError
>>> ft.tree.map(jnp.add, {"a": 1}, {"b": 1})
Traceback (most recent call last):
...
functrans.core.errors.TreeMismatchError: tree_map: ...
''')
