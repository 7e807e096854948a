"""What `explain` says of small programs, word for word, and that its page is well-formed."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from tests.inspect.programs import loss, update

W, X = ft.ShapeDtypeStruct((64, 32), "float32"), ft.ShapeDtypeStruct((128, 64), "float32")

TEXT = """\
loss: 5 equations -> 4 -> 1 kernel and 1 call (C for ISA)

What costs
----------
2 launches; 73.9 kB moved, 537 kFLOP; peak of memory 57.7 kB
nothing runs on the host
 68% ###########      gemm 0  57.3 kB   524 kFLOP  programs.py:7  hidden = jnp.tanh(x @ w) * 1
 32% #####            k0      16.5 kB  12.3 kFLOP  programs.py:8  return (hidden * hidden).sum(axi\
s=0)

Not fused, and why
------------------
programs.py:7  hidden = jnp.tanh(x @ w) * 1: f32[128, 32] is in memory, where k0 finds it
    what helps: elementwise operations on all of the product, right after it, are its epilogue; su\
ms, gathers and transposes of it are not
programs.py:8  return (hidden * hidden).sum(axis=0): add f32[32] is computed apart: no epilogue of\
 a product: it reduces the product before anything else
    what helps: nothing to gain where the sum is of a matrix that is needed anyway; else sum an op\
erand first: (x @ w).sum(0) is x.sum(0) @ w

Memory
------
arguments 41 kB, outputs 128 B, temporaries 16.6 kB, peak 57.7 kB
most temporaries at k0: 16.6 kB, for programs.py:8  return (hidden * hidden).sum(axis=0)
    16.4 kB f32[128, 32]  # programs.py:7  hidden = jnp.tanh(x @ w) * 1
    256 B room of a kernel  # programs.py:8  return (hidden * hidden).sum(axis=0)

Program, simplified
-------------------
in:  w:f32[64,32]  x:f32[128,64]
programs.py:7  hidden = jnp.tanh(x @ w) * 1
   0 a:f32[128,32] = dot_general[ij,jk->ik] x w
   1 b:f32[128,32] = tanh a
programs.py:8  return (hidden * hidden).sum(axis=0)
   2 c:f32[128,32] = mul b b
   3 d:f32[32] = reduce_sum[axes=(0,)] c
out: result = d

Kernels
-------
gemm 0: [128, 64] @ [64, 32]
    57.3 kB moved, 524 kFLOP
    equations 0
    programs.py:7  hidden = jnp.tanh(x @ w) * 1
k0: 128 rows of 32; LANES
    16.5 kB moved, 12.3 kFLOP, N lines of C: .source('k0')
    equations 1-3
    programs.py:7  hidden = jnp.tanh(x @ w) * 1
    programs.py:8  return (hidden * hidden).sum(axis=0)

Passes
------
      algebra: x * 1 = x, x * -1 = -x  # programs.py:7
      one by one: .stepping, 1 pass, then the schedule"""


def plain(text):
    """A text without what depends on the machine."""
    text = re.sub(r"C for \w+", "C for ISA", text)
    text = re.sub(r"\d+ elements at once \([^)]*\)", "LANES", text)
    return re.sub(r"\d+ lines of C", "N lines of C", text)


def test_text():
    assert plain(str(ft.explain(loss, W, X, target="cpu"))) == TEXT


def test_jitted_traced_and_plain_functions_are_explained_alike():
    text = str(ft.explain(loss, W, X, target="cpu"))
    assert str(ft.explain(ft.jit(loss), W, X, target="cpu")) == text
    assert str(ft.explain(ft.lower(loss, W, X, target="cpu"))) == text


def test_sources_and_machine_code():
    explained = ft.explain(loss, W, X, target="cpu")
    assert explained.source("k0").startswith("static void k0(void *arg")
    assert explained.machine_code("k0").startswith("k0:\n\t")
    with pytest.raises(ArgumentError, match="no kernel 'k9'"):
        explained.source("k9")


def test_updates_are_in_place_or_say_why_not():
    table, row = np.zeros((8, 4), np.float32), np.ones(4, np.float32)
    given = ft.explain(ft.jit(update, donate_argnums=0), table, row)
    assert "result 0 is in the memory of table, which was donated" in given.report.memory
    kept = ft.explain(update, table, row)
    assert kept.report.memory == [
        "programs.py:12  return table.at[2].set(row): the scatter_set f32[8, 4] is copied before "
        "its update: its old value belongs to the caller"]


def test_results_that_are_arguments_are_copies():
    params = {"w": np.ones(3, np.float32)}
    report = ft.explain(lambda params: (params["w"], params["w"] + 1), params).report
    assert report.memory == ["result 0 is a copy: it is params.w, which belongs to the caller"]


def test_the_peak_names_its_line():
    def f(x):
        wide = jnp.outer(x, x)
        return jnp.linalg.norm(wide @ wide)

    peak = ft.explain(f, np.ones(32, np.float32)).report.peak
    assert peak.nbytes >= 2 * 4 * 32 * 32
    assert peak.line.text == "return jnp.linalg.norm(wide @ wide)"
    assert [v.nbytes for v in peak.values[:2]] == [4096, 4096]


def test_per_sample_decisions_have_both_figures():
    def norms(w, x):
        grads = ft.vmap(ft.grad(lambda w, x: jnp.tanh(x @ w).sum()), (None, 0))(w, x)
        return (grads**2).sum((1, 2))

    explained = ft.explain(norms, np.ones((64, 64), np.float32), np.ones((32, 64), np.float32))
    (decision,) = explained.report.decisions
    assert "never made (from factors:" in decision and "materialised:" in decision
    assert "Per-sample algebra" in str(explained)


def test_bodies_of_loops_have_kernels():
    def f(x):
        return ft.lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) + x.sum(), x)

    names = [k.name for k in ft.explain(f, np.ones(100, np.float32)).kernels]
    assert any(" in " in name for name in names)


def test_loops_over_lanes_say_how_or_why_not():
    def walk(x):
        return ft.lax.fori_loop(0, 50, lambda _, y: jnp.sin(y) + y, x)

    def mixed(x):
        return ft.lax.fori_loop(0, 50, lambda _, y: y - jnp.mean(y), x)

    x = np.ones(4096, np.float32)
    (kernel,) = ft.explain(ft.vmap(walk), x).kernels
    assert "one kernel of 4096 lanes" in kernel.about
    assert "threads take blocks" in kernel.about
    assert "for (i64 b" in ft.explain(ft.vmap(walk), x).source(kernel.name)
    assert any("no kernel of lanes: no axis is of lanes that do not mix" in k.about
               for k in ft.explain(mixed, x).kernels)


def test_a_program_without_equations():
    assert str(ft.explain(lambda x: x, X)).startswith("<lambda>: 0 equations -> 0 (nothing")


def test_gpu_kernels_have_registers_and_ptx():
    explained = ft.explain(loss, W, X, target="cuda:90")
    assert "(Triton for cuda:90)" in str(explained)
    first = explained.kernels[0]
    assert "registers" in first.about and "bytes of shared memory" in first.about
    assert first.equations[:1] == (0,) and first.flops >= 2 * 128 * 64 * 32
    assert ".entry" in explained.machine_code(first.name)
    assert explained.report.peak.values[0].nbytes == 4 * 128 * 32


def test_kernels_of_one_name_are_told_apart():
    def f(a, b, c):
        return jnp.tanh(a @ b) @ c

    shapes = [ft.ShapeDtypeStruct((64, 64), "float32")] * 3
    explained = ft.explain(f, *shapes, target="cuda:90")
    names = [k.name for k in explained.kernels]
    assert names == ["matmul", "matmul #2"]
    assert explained.source("matmul #2") != explained.source("matmul")
    assert [k.equations for k in explained.kernels] == [(0, 1), (2,)]


def test_equations_of_attention_are_in_its_kernel():
    def f(q, k, v):
        return ft.nn.softmax(q @ k.swapaxes(-1, -2)) @ v

    shapes = [ft.ShapeDtypeStruct((4, 128, 64), "float32")] * 3
    (kernel,) = ft.explain(f, *shapes, target="cuda:90").kernels
    assert kernel.name == "attention" and len(kernel.equations) > 8


def test_named_sizes():
    x = ft.ShapeDtypeStruct((ft.Dim("n"), 4), "float32")
    (kernel,) = ft.explain(lambda x: jnp.sin(x) * 2, x, target="cpu").kernels
    assert str(kernel.moved) == "32*n"
    assert "once its sizes are known" in str(ft.explain(lambda x: x + 1, x, target="cuda:90"))


def test_what_kernels_on_gpus_leave_in_memory_is_told():
    def rows(w, x):
        h = jnp.tanh(x @ w)
        return h / h.sum(axis=1, keepdims=True)

    specs = [ft.ShapeDtypeStruct(s, "float32") for s in ((64, 64), (64, 64))]
    explained = ft.explain(rows, *specs, target="cuda:90")
    kernels = [k.name for k in explained.kernels]
    told = [note for note in explained.report.apart if "is in memory, where" in note]
    assert f"f32[64, 64] is in memory, where {kernels[-1]} finds it" in told[-1]
    assert explained.kernels[-1].ptx.count("\n") + 1 > 100
    assert f".machine_code({kernels[-1]!r})" in str(explained)
    for kernel in explained.kernels:
        assert ("lays out" in kernel.about) == (not kernel.equations)
    assert not [note for note in explained.report.apart if "somewhere" in note or "/" in note]


def test_results_in_donated_memory_are_counted_once():
    def update(w, row):
        return w.at[3].set(row)

    specs = [ft.ShapeDtypeStruct(s, "float32") for s in ((64, 8), (8,))]
    kept = ft.lower(ft.jit(update), *specs, target="cpu").compile().memory_analysis()
    given = ft.lower(ft.jit(update, donate_argnums=0), *specs,
                     target="cpu").compile().memory_analysis()
    assert (kept["donated"], given["donated"]) == (0, 64 * 8 * 4)
    assert given["peak"] == given["arguments"] + given["temporaries"]


def test_the_arithmetic_of_a_call_is_where_it_is_done():
    def f(q, k, v, w):
        return (ft.nn.softmax(q @ k.swapaxes(-1, -2)) @ v * w).sum()

    shapes = [ft.ShapeDtypeStruct((4, 128, 64), "float32")] * 4
    kernels = ft.explain(ft.value_and_grad(f, (0, 1, 2)), *shapes, target="cuda:90").kernels
    flops = {k.name: k.flops for k in kernels}
    product = 2 * 4 * 128 * 128 * 64
    assert flops["attention"] == 2 * product
    assert (flops["attention_gradient_q"], flops["attention_gradient_kv"]) == (
        3 * product, 4 * product)

    x = ft.ShapeDtypeStruct((512, 512), "float32")
    with ft.config.matmul_precision("high"):  # for which an operand is packed
        kernels = ft.explain(lambda x: x @ x, x, target="cuda:90").kernels
    assert {k.name: k.flops for k in kernels} == {"matmul_turned_b": 0, "matmul": 2 * 512**3}
