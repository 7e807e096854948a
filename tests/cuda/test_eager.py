"""Operations outside of jit on arrays on GPUs: the driver is fake, and the interpreter computes."""

import pytest
from fake import run

HEAD = """
from functrans import numpy as jnp, lax
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import HostStep
from functrans.transforms import eager as operations
texts, made = set(), []
class Interpreted:
    "A program on the fake GPU, run by Triton's interpreter on copies."
    def __init__(self, jaxpr, gpu):
        program = write_program(simplify(jaxpr), any_size=True)
        texts.update(program.sources)
        made.append(jaxpr.name)
        self.host_calls = sum(isinstance(s, HostStep) for s in program.steps)
        self.inner, self.gpu, self.run = InterpretedProgram(program), gpu, self
    def __call__(self, operands):
        outs = self.inner([getattr(ft.device_get(x), "_np", x) for x in operands])
        return [rt.place_array(rt.wrap(o), self.gpu + 1) for o in outs]
operations.operation_on_gpu = Interpreted
operations.is_on_gpu = lambda run: isinstance(run, Interpreted)
operations.install()
X = np.arange(12, dtype=np.float32).reshape(3, 4) / 4
x = gpu(X)
def check(actual, expected):
    for a, e in zip(ft.tree.leaves(actual), ft.tree.leaves(expected), strict=True):
        assert a.device.platform == "gpu", a.device
        assert (a.shape, a.dtype) == (np.shape(e), np.asarray(e).dtype), (a, e)
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), 1e-4, 1e-4)
"""


@pytest.fixture
def on_gpu(library):
    """Runs code in a process whose GPU is fake and computes what kernels would."""
    return lambda code: run(library, HEAD + code)


def test_operations_stay_on_the_device(on_gpu):
    on_gpu("""
check(x + 1, X + 1)
check(2.5 * x, 2.5 * X)
check(x > 1, X > 1)
check(jnp.sin(x).sum(0), np.sin(X).sum(0))
check(x @ x.T, X @ X.T)
check(x.reshape(-1)[3:5].mean(), X.reshape(-1)[3:5].mean())
check(jnp.concatenate([x, x[:1]], 0), np.concatenate([X, X[:1]]))
check(x + X, X + X)  # small arrays of the host come along
check(jnp.where(x > 1, x, 0), np.where(X > 1, X, 0).astype("f"))
assert (x + 1).weak_type is False and (jnp.asarray(gpu(2)) * 2).weak_type is False
""")


def test_indexing(on_gpu):
    on_gpu("""
check(x[1], X[1])
check(x[1:, 2], X[1:, 2])
check(x[::2, ::-1], X[::2, ::-1])
check(x[gpu([2, 0], np.int32)], X[[2, 0]])
check(x[gpu(-1, np.int32)], X[-1])
check(x[x > 1], X[X > 1])
check(x.at[1].set(0.0)[1], X[1] * 0)
check(x.at[gpu([0, 0], np.int32)].add(1.0)[0], X[0] + 2)
assert float(x[2, 3]) == X[2, 3] and str(x) == str(jnp.asarray(x))
""")


def test_transforms(on_gpu):
    on_gpu("""
loss = lambda v: (jnp.tanh(v) ** 2).sum()
with ft.config.default_device("cpu"):
    expected = ft.value_and_grad(loss)(X), ft.vmap(lambda r: r @ r)(X), ft.jvp(loss, (X,), (X,))
check((ft.value_and_grad(loss)(x), ft.vmap(lambda r: r @ r)(x), ft.jvp(loss, (x,), (x,))),
      expected)
""")


def test_new_arrays_are_on_the_default_device(on_gpu):
    on_gpu("""
made_here = lambda: [jnp.zeros((2, 3)), jnp.full(2, 7), jnp.arange(5), jnp.array([1, 2]),
                     jnp.linspace(0, 1, 4), jnp.eye(3), jnp.ones_like(X),
                     ft.random.normal(ft.random.key(0), (5,))]
with ft.config.default_device("cpu"):
    expected = made_here()
    assert {a.device.platform for a in expected} == {"cpu"}
check(made_here(), expected)
""")


def test_new_sizes_need_no_new_kernel(on_gpu):
    on_gpu("""
# what decides about loads is odd, a multiple of 4, of 16: of each class one, and then others
for n, m in [(3, 70), (12, 99), (12, 100), (16, 112), (5, 90), (44, 101), (20, 76), (40, 80)]:
    x = gpu(np.ones((n, m)))
    (x * 2 + x[0] - jnp.full((n, m), n)).sum(1), x[1:3], x[n - 1]
    if n == 16:
        first = set(texts)
assert texts == first, len(texts - first)
before = len(made)
for i in range(40):
    x[i] * i + jnp.full((40, 80), float(i))
assert made[before:] == ["mul", "broadcast_in_dim", "add"], made  # not for each number, nor place
""")


def test_every_primitive(on_gpu):
    on_gpu("""
sys.path.insert(0, ".")
from tests.laws.primitives import all_cases
from tests.laws.test_primitive_laws import assert_same
for case in all_cases():
    if case.args:
        outs = case.outs(*[ft.device_put(a, "gpu") for a in case.args])
        assert {o.device.platform for o in outs} == {"gpu"}, case
        with ft.config.default_device("cpu"):
            assert_same(outs, case.outs(*case.args))
""")


def test_arrays_on_two_gpus_are_an_error(on_gpu):
    on_gpu("""
with raises(errors.ArgumentError) as error:
    ft.device_put(X, "gpu:0") + ft.device_put(X, "gpu:1")
assert 'ft.device_put(x, "gpu:0")' in str(error)
""")


def test_reshapes_share_memory(on_gpu):
    on_gpu("""
y = x.reshape(2, 6)
assert rt.cuda_pointer(y) == rt.cuda_pointer(x)
check(y, X.reshape(2, 6))
assert made == []
""")


def test_what_broadcasts_is_one_kernel(on_gpu):
    on_gpu("""
check(x + x[0], X + X[0])
check(x[:, :1] * x, X[:, :1] * X)
assert made == ["dynamic_slice", "add", "dynamic_slice", "multiply"], made
""")
