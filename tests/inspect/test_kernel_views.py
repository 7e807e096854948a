"""Views of kernels: equations by lines of the source, loops, machine code, and what loops cost."""

import re

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.inspect.explain.code import lines_of_variable
from functrans.lowering.equation_places import equations_in
from functrans.lowering.schedule.loop_work import work_of_jaxpr
from functrans.lowering.triton.machine.line_info import ptx_lines
from tests.inspect.kernels import KERNELS, PROGRAMS, gpu_kernels, has_steps, newton, shape, walk
from tests.inspect.pages import Page
from tests.laws.primitives import all_cases, groups
from tests.laws.programs import together, values_of

OF_THE_PROGRAM = {"constant", "optimization_barrier", "imag", "real", "reshape"}
"""Equations that may be no step's: memory, an order, and views of results."""


def _called(name):
    f, args = PROGRAMS[name]
    return f, *args


def equations_of_lines(kernel):
    """The equations that some line of a source is for."""
    linked = kernel.values_by_line()
    assert len(linked) == kernel.source.count("\n") + 1
    return {v.equation for values in linked for v in values}


def check_equations(jaxpr, kernels):
    """Every equation is a step's, and reached from a line of it where it has a source."""
    owned = {e for k in kernels for e in k.equations}
    left = {eqn.primitive.name for e, eqn in enumerate(jaxpr.eqns) if e not in owned
            and any(v.aval.size != 0 for v in eqn.outvars)}
    assert left <= OF_THE_PROGRAM, left
    for k in kernels:
        if k.source:
            assert set(k.equations) <= equations_of_lines(k), k.name


def lines_for(kernel, path):
    """The lines of a source that are for an equation, given by its path."""
    return [text for text, values in zip(kernel.source.split("\n"), kernel.values_by_line(),
                                         strict=True)
            if any((v.equation, *v.inside) == path for v in values)]


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_equation_has_lines_and_loops(name, backend):
    f, args = PROGRAMS[name]
    jaxpr, kernels = KERNELS[backend](f, *args)
    check_equations(jaxpr, kernels)
    for k in kernels:
        assert k.loops and all(line.depth >= 0 for line in k.loops)
        assert all(a.depth + 1 >= b.depth for a, b in zip(k.loops, k.loops[1:], strict=False))
        for line in k.loops:
            assert (line.kind == "loop") == bool(line.variable)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("cases", groups(all_cases(), 6), ids=lambda cases: str(cases[0]))
def test_each_primitive_has_lines(cases):
    f, args = together([values_of(case) for case in cases])
    for make in KERNELS.values() if has_steps(f, *args) else ():
        check_equations(*make(f, *args))


@pytest.mark.parametrize("backend, tanh, store", [
    ("cpu", r"v\d+ = tanh_\w+\(v\d+\);", r"store_\w+\("), ("gpu", r"= fm.tanh\(", r"tl.store\(")])
def test_lines_are_those_of_the_operation(backend, tanh, store):
    def f(x, y):
        return jnp.tanh(x) * y

    _, (kernel,) = KERNELS[backend](f, shape(40, 50), shape(40, 50))
    (line,) = [text for text in lines_for(kernel, (0,)) if "tanh" in text]
    assert re.search(tanh, line)
    assert any(re.search(store, text) for text in lines_for(kernel, (1,)))
    assert not any("tanh" in text for text in lines_for(kernel, (1,)))


@pytest.mark.parametrize("backend", KERNELS)
def test_lines_of_lanes_are_for_equations_of_the_body(backend):
    jaxpr, kernels = KERNELS[backend](ft.vmap(walk, (0, None)), shape(2048), shape(50))
    (kernel,) = [k for k in kernels if k.kind in ("lanes", "kernel") and "lanes" in k.name]
    paths = {path[1:]: eqn.primitive.name for path, eqn in equations_in(jaxpr) if len(path) > 1}
    found = {v.inside for values in kernel.values_by_line() for v in values}
    assert set(paths) <= found
    (scan,) = [k for k, eqn in enumerate(jaxpr.eqns) if eqn.primitive.name == "scan"]
    (sine,) = [path for path, name in paths.items() if name == "sin"]
    assert any("sin" in text for text in lines_for(kernel, (scan, *sine)))


def test_phases_of_a_loop_are_linked_with_its_body():
    f, args = PROGRAMS["loop_in_a_kernel"]
    jaxpr, kernels = gpu_kernels(f, *args)
    (kernel,) = [k for k in kernels if k.name == "loop"]
    (scan,) = kernel.equations
    body = jaxpr.eqns[scan].params["jaxpr"]
    tanh = [e.primitive.name for e in body.eqns].index("tanh")
    assert any("fm.tanh(" in text for text in lines_for(kernel, (scan, 0, tanh)))
    assert [line.size for line in kernel.loops if line.variable == "t"] == [64]
    assert {line.variable for line in kernel.loops} >= {"t", "m", "n", "k"}


def test_kernels_side_by_side_are_linked_each_with_its_own():
    jaxpr, (kernel,) = gpu_kernels(*_called("small_ones"))
    for number, eqn in enumerate(jaxpr.eqns):
        texts = lines_for(kernel, (number,))
        assert any(("tl.sin" in t or "fm.sin" in t) == (eqn.primitive.name == "sin")
                   for t in texts if " = " in t)


# --- loops

def test_loops_of_a_kernel():
    explained = ft.explain(PROGRAMS["network"][0], *PROGRAMS["network"][1], target="cpu")
    text = re.sub(r"\d+ at once, in vectors", "WIDE", explained.loops("k1"))
    assert text == """\
for o in 128  # over threads
  for i in 32  # WIDE
    load c[o*32 + i]  # f32[128, 32], 16.4 kB
    d = mul c c
    add into e  # add f32[32]
store e  # add f32[32], 128 B"""
    product = next(k for k in explained.kernels if "epilogue" in k.name)
    loops = [line.variable for line in product.loops if line.kind == "loop"]
    assert loops == ["m", "n", "k"] and product.loops[2].how == "a reduction"
    assert sum(line.nbytes for line in product.loops) == product.moved
    assert "for m in 128" in str(product.loops[0])
    with pytest.raises(ArgumentError, match="no step 'k9'"):
        explained.loops("k9")


def test_loops_say_how_a_gpu_walks_them():
    _, (kernel,) = gpu_kernels(*_called("rows"))
    rows, places = [line for line in kernel.loops if line.kind == "loop"][:2]
    assert (rows.variable, rows.size, places.variable, places.size) == ("o", 256, "i", 64)
    assert re.fullmatch(r"tiles of \d+, over \d+ programs", rows.how)
    (line,) = [kernel.source.split("\n")[k] for k in lines_of_variable(kernel, "o")]
    assert line.startswith("    o = pid")
    _, (lanes,) = gpu_kernels(ft.vmap(newton), shape(2048))
    head = lanes.loops[0]
    assert (head.variable, head.size, head.how) == ("lane", 2048, "a lane a thread")
    assert any(line.how == "until its condition fails" for line in lanes.loops)
    _, kernels = KERNELS["cpu"](*_called("loop_in_a_kernel"))
    (scan,) = [k for k in kernels if k.kind == "scan"]
    assert [line.size for line in scan.loops if line.variable == "t"] == [64]
    assert any(line.values and line.values[0].inside for line in scan.loops)


def test_inputs_of_bodies_have_their_names():
    def f(w, x):
        return ft.lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h), jnp.zeros((256, 256)), x)

    explained = ft.explain(f, shape(256, 256), shape(9, 256, 256), target="cpu")
    (kernel,) = [k for k in explained.kernels if k.source and k.place]
    assert re.search(r"load [a-c]\[", explained.loops(kernel.name))
    Page(explained._repr_html_()).check_links()


# --- machine code

@pytest.fixture(scope="module")
def compiled():
    return ft.explain(lambda x, y: jnp.tanh(x) * y, shape(64, 64), shape(64, 64),
                      target="cuda:90")


def test_machine_code_of_a_gpu_is_linked_with_the_source(compiled, tmp_path):
    (kernel,) = compiled.kernels
    source = kernel.source.split("\n")
    for code in (kernel.ptx_lines(), kernel.instruction_lines()):
        linked = {line for _, line in code if line >= 0}
        assert len(linked) >= 4 and all(source[k].strip() for k in linked)
    tanh = next(k for k, text in enumerate(source) if "fm.tanh(" in text)
    assert sum(line == tanh for _, line in kernel.instruction_lines()) > 5
    assert any(line == tanh and "ex2.approx" in text for text, line in kernel.ptx_lines())
    assert "EXIT" in compiled.machine_code(kernel.name, "sass")
    assert ".target sm_90" in compiled.machine_code(kernel.name)
    with pytest.raises(ArgumentError, match="no machine code 'ptxas'"):
        compiled.machine_code(kernel.name, "ptxas")
    compiled.save(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    page.check_links()
    assert f"k0c{tanh}" in page.related and "k0n0" in page.own


def test_code_that_is_called_by_called_code_is_for_the_line_of_the_kernel():
    ptx = """
    .file 1 "<functrans_triton_0>"
    .file 2 "/device_math.py"
.entry k
{
	.loc 1 3 1
	mov.u32 %r1, 1;
	.loc 2 70 2, function_name $L, inlined_at 1 5 9
	.loc 2 90 4, function_name $M, inlined_at 2 70 2
	ex2.approx.f32 %f1, %f2;
	.loc 2 99 1
	ret;
}
	.section .debug_str"""
    assert [(text.strip(), line) for text, line in ptx_lines(ptx)][-4:] == [
        ("mov.u32 %r1, 1;", 2), ("ex2.approx.f32 %f1, %f2;", 4), ("ret;", -1), ("}", -1)]


# --- what loops cost

LENGTH = 12
BODIES = {
    "lanes": (lambda c, x: (c * 1.01 + jnp.sin(c) * x, c), shape(2048), shape(LENGTH)),
    "phases": (lambda c, x: (jnp.tanh(c @ x), (c * c).sum()), shape(32, 32), shape(LENGTH, 32, 32)),
    "chosen": (lambda c, x: (jnp.where(c > x, c * 0.5, c * c), None), shape(2048), shape(LENGTH)),
}


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("name", BODIES)
def test_a_loop_costs_what_its_iterations_do(name, backend):
    body, carry, xs = BODIES[name]

    def unrolled(c, xs):
        found = []
        for k in range(LENGTH):
            c, y = body(c, xs[k])
            found.append(y)
        return c, found

    scanned, one_by_one = [sum(k.flops for k in KERNELS[backend](f, carry, xs)[1]) for f in (
        lambda c, xs: ft.lax.scan(body, c, xs), unrolled)]
    assert scanned == one_by_one > 0


@pytest.mark.parametrize("backend", KERNELS)
def test_a_loop_that_decides_when_it_ends_costs_an_iteration(backend):
    jaxpr, (kernel,) = KERNELS[backend](ft.vmap(newton), shape(2048))
    assert kernel.flops_per == "iteration"
    assert 5 * 2048 <= kernel.flops <= 12 * 2048
    assert work_of_jaxpr(jaxpr).per_iteration


def test_costs_say_what_is_of_one_iteration():
    explained = ft.explain(ft.vmap(newton), shape(2048), target="cpu")
    assert explained.costs.has_open_loops and explained.costs.is_bounded
    assert "FLOP per iteration" in str(explained) and "with one iteration of each" in str(explained)
    assert "one iteration of open loops" in explained._repr_html_()


def test_steps_of_other_operations_are_of_the_line_that_asked():
    def update(x, i, y):
        return x.at[i].min(y)  # for GPUs sorted, and folded by segments

    _, kernels = gpu_kernels(update, shape(64, 8), shape(20, dtype="int32"), shape(20, 8))
    assert any("sorted" in k.name for k in kernels)
    assert {line.text for k in kernels for line in k.lines} == {
        "return x.at[i].min(y)  # for GPUs sorted, and folded by segments"}
