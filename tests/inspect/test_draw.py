"""Pictures of programs: they parse, boxes do not overlap, and long chains are one node."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.inspect.draw.layout import Box, place
from tests.inspect.pages import Page
from tests.inspect.programs import loss

SVG = "{http://www.w3.org/2000/svg}"
W, X = np.ones((64, 32), np.float32), np.ones((128, 64), np.float32)


def texts(svg):
    return ["".join(t.itertext()) for t in ET.fromstring(svg).iter(f"{SVG}text")]


def test_kernels_arguments_and_results_are_named():
    found = texts(ft.draw(loss, W, X, target="cpu").svg)
    assert {"w", "x", "gemm 0", "k0", "result"} <= set(found)
    assert {"matmul f32[128,32]", "tanh f32[128,32]", "reduce_sum f32[32]"} <= set(found)


def test_long_chains_are_one_node():
    def f(x):
        for _ in range(10):
            x = jnp.sin(x) * 2
        return x

    found = texts(ft.draw(f, np.ones(10, np.float32)).svg)
    assert "sin … mul (20 operations) f32[10]" in found


def network(params, x):
    with ft.named_scope("block"):
        for p in params:
            for _ in range(12):
                x = jnp.tanh(x @ p["w"]) * 2
                x = jnp.sort(x, axis=0) + p["b"]
    return x


def test_large_programs_are_drawn_by_lines_and_layers_once():
    params = [{"w": np.ones((8, 8), np.float32), "b": np.ones(8, np.float32)} for _ in range(2)]
    drawing = ft.draw(network, params, np.ones((16, 8), np.float32))
    found = texts(drawing.svg)
    assert sum(t.startswith("× ") for t in found) >= 1 and len(found) < 60
    assert any("test_draw.py" in t and "x = jnp.tanh(x @ p" in t for t in found)
    assert any("block" in t for t in found) and "params[0].w" in found
    assert any("of the cost" in t for t in found)


def test_a_program_of_1000_equations_is_readable():
    def f(x):
        for k in range(50):
            x = jnp.sin(x) * k + x.max(0)
            x = jnp.cumsum(x, axis=1) @ x
        return jnp.exp(x)

    x = ft.ShapeDtypeStruct((16, 16), "float32")
    gradient = ft.grad(lambda x: f(x).sum())
    assert len(ft.make_jaxpr(gradient)(x).eqns) >= 1000
    drawing = ft.draw(gradient, x, target="cpu")
    picture = ET.fromstring(drawing.svg)
    assert len(texts(drawing.svg)) < 400 and float(picture.get("width")) < 4000


def test_bodies_of_loops_are_shown():
    def f(x):
        def step(c, _):
            return ft.lax.while_loop(lambda s: s.sum() < 9, lambda s: jnp.sin(s @ s), c), c.max()
        return ft.lax.scan(step, x, None, length=3)

    found = texts(ft.draw(f, np.ones((4, 4), np.float32)).svg)
    assert {"scan", "while", "body", "condition"} <= set(found)
    assert {"sin f32[4,4]", "reduce_max f32[]", "lt bool[]"} <= set(found)


def boxes_in(element):
    for group in element.findall(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        yield group, [float(rect.get(k)) for k in ("x", "y", "width", "height")]


def test_boxes_are_within_their_boxes():
    params = [{"w": np.ones((8, 8), np.float32), "b": np.ones(8, np.float32)} for _ in range(2)]
    root = ET.fromstring(ft.draw(network, params, np.ones((16, 8), np.float32)).svg)
    waiting, count = list(boxes_in(root)), 0
    while waiting:
        group, (x, y, w, h) = waiting.pop()
        for inner, (u, v, a, b) in boxes_in(group):
            assert x <= u and u + a <= x + w + 0.2 and y <= v and v + b <= y + h + 0.2
            waiting.append((inner, (u, v, a, b)))
            count += 1
    assert count > 3


def test_launches_of_one_kernel_are_boxes_of_their_own():
    def f(a, b):
        return jnp.tanh(jnp.tanh(a @ b) @ b)

    shapes = [ft.ShapeDtypeStruct((64, 64), "float32")] * 2
    found = texts(ft.draw(f, *shapes, target="cuda:90").svg)
    assert found.count("matmul") == 2 and found.count("tanh f32[64,64]") == 2


def test_saved(tmp_path):
    drawing = ft.draw(loss, W, X)
    drawing.save(tmp_path / "loss.svg")
    assert (tmp_path / "loss.svg").read_text() == drawing._repr_svg_()
    drawing.save(tmp_path / "loss.html")
    page = Page((tmp_path / "loss.html").read_text())
    assert not page.external and "data-find" in (tmp_path / "loss.html").read_text()


def test_wrong_arguments_are_told(tmp_path):
    x = np.ones((4, 4), np.float32)
    with pytest.raises(ArgumentError, match=r'save\("program.svg"\)'):
        ft.draw(jnp.tanh, x).save(tmp_path / "program.png")
    lowered = ft.lower(jnp.tanh, x)
    for wrong in (jnp.tanh(x), lowered.compile()):
        for see in (ft.draw, ft.explain):
            with pytest.raises(ArgumentError, match=r"explain\(f, x\)"):
                see(wrong)
    assert "tanh" in str(ft.explain(lowered))


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.tuples(st.floats(10, 200), st.floats(10, 80)), min_size=count,
                          max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = [(a, b) for a, b in draw(st.lists(pairs, max_size=25)) if a < b]
    return [Box(w, h) for w, h in sizes], edges


@given(graphs())
def test_boxes_do_not_overlap_and_edges_go_down(graph):
    boxes, edges = graph
    placed = place(boxes, edges)
    for i, (x, y) in enumerate(placed.at):
        assert x >= -1e-6 and x + boxes[i].width <= placed.width + 1e-6
        assert y + boxes[i].height <= placed.height + 1e-6
        for j in range(i):
            u, v = placed.at[j]
            assert x + boxes[i].width <= u + 1e-6 or u + boxes[j].width <= x + 1e-6 \
                or y + boxes[i].height <= v + 1e-6 or v + boxes[j].height <= y + 1e-6
    for a, b in edges:
        heights = [placed.at[a][1] + boxes[a].height, *[y for _, y in placed.bends[a, b]],
                   placed.at[b][1]]
        assert heights == pytest.approx(sorted(heights))


def test_neighbours_are_put_near_each_other():
    # a ladder: without an order by barycentres its rungs cross
    edges = [(0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8)]
    placed = place([Box(20, 10)] * 9, edges)
    assert all(placed.at[a][0] == pytest.approx(placed.at[b][0]) for a, b in edges)
