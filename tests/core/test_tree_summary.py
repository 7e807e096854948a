"""Summaries of trees, pictures of arrays, and large arrays in a line."""

import struct
import zlib
from types import SimpleNamespace

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans.core import frontends
from functrans.core.array_picture import _png, picture_of
from tests.inspect.pages import Page

TREE = {"layers": [{"w": np.arange(6.0).reshape(2, 3), "b": np.array([1, np.nan, 3], "f")}
                   for _ in range(2)],
        "step": 3, "name": "mlp", "half": jnp.asarray([1.5, -2], "bfloat16")}


def test_rows_are_the_arrays():
    found = {leaf.name: leaf for leaf in ft.tree.summary(TREE).leaves}
    w, b = found[".layers[0].w"], found[".layers[1].b"]
    assert (w.shape, w.dtype, w.nbytes, w.low, w.high, w.nans) == ((2, 3), "f64", 48, 0, 5, 0)
    assert (b.low, b.high, b.nans) == (1, 3, 1)
    assert (found[".half"].low, found[".half"].dtype) == (-2, "bf16")
    assert (found[".step"].low, found[".name"].dtype, found[".name"].nbytes) == (3, "str", 0)
    summary = ft.tree.summary(TREE)
    assert summary.nans == 2 and summary.nbytes == sum(leaf.nbytes for leaf in summary.leaves)


def test_the_table_folds():
    text = str(ft.tree.summary(TREE, depth=2))
    assert "[0]" in text and ".w" not in text and "2 arrays" in text
    assert str(ft.tree.summary(TREE)).count("\n") > text.count("\n")
    large = {f"layer{k}": {"w": np.ones(3), "b": np.ones(1)} for k in range(50)}
    lines = str(ft.tree.summary(large)).splitlines()
    assert len(lines) == 52 and "100 arrays" in lines[1]
    assert all("2 arrays" in line and " 1 " in line for line in lines[2:])


def test_the_page_folds():
    page = Page(ft.tree.summary(TREE)._repr_html_())
    text = " ".join(page.text)
    assert ".layers" in text and "[2,3]" in text and not page.external
    html = ft.tree.summary(TREE)._repr_html_()  # each row has the columns of the head
    rows = html.split('class="r" role="row"')[1:]
    assert len(rows) == 1 + len(ft.tree.summary(TREE).leaves)
    assert {row.split("<details")[0].count("role=") for row in rows} == {7}


def test_types_and_tracers_have_no_values():
    (leaf,) = ft.tree.summary(ft.ShapeDtypeStruct((4, 5), "float32")).leaves
    assert (leaf.shape, leaf.nbytes, leaf.low, leaf.nans) == ((4, 5), 80, None, None)
    seen = []
    ft.jit(lambda x: (seen.append(ft.tree.summary({"x": x})), x)[1])(np.ones(3))
    assert seen[0].leaves[0].low is None and "[3]" in str(seen[0])
    assert "0 arrays" in str(ft.tree.summary({})) and str(ft.tree.summary(np.zeros(0)))


def test_trees_of_large_arrays_do_not_flood():
    params = {f"w{k}": jnp.ones((300, 200)) * k for k in range(20)}
    text = repr(params)
    assert text.count("\n") == 0 and len(text) < 20 * 120
    assert "shape=(300, 200), dtype=float32" in repr(params["w3"])
    assert str(params["w3"]).count("\n") > 3  # print(x) shows more of one
    assert repr(jnp.ones((2, 2))) == "Array([[1., 1.],\n       [1., 1.]], dtype=float32)"


# --- pictures

def test_pictures_are_of_the_numbers():
    lines = str(picture_of(np.array([[0.0, 1.0], [np.nan, 0.5]]), "x")).splitlines()
    assert lines == ["x: f64[2,2], 0 to 1, mean 0.5, 1 not finite", " @", "?+"]
    assert str(picture_of(np.full((2, 3, 4), np.inf), "")).startswith(
        "array: f64[2,3,4], no finite")
    assert len(str(picture_of(np.eye(500) * -1, "x")).splitlines()) == 25
    for x in (np.float32(3), np.zeros((0, 3)), np.ones((1, 0, 2, 2)), np.array([True, False]),
              np.ones(3) * 1j):
        assert (str(picture_of(x, "x")) and "data:image/png" in picture_of(x, "x")._repr_html_()) \
            or 0 in np.shape(x)


def test_the_png_has_the_pixels():
    data = _png(np.array([[0.0, 1.0, np.nan]]))
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (3, 1)
    start = data.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", data[start - 8:start - 4])
    row = zlib.decompress(data[start:start + length])
    assert row == bytes([0, 68, 1, 84, 253, 231, 37, 220, 20, 20])


def test_visualize_shows_trees_in_compiled_programs(capsys):
    def f(p):
        ft.debug.visualize(p, "p")
        return p["a"].sum()

    ft.jit(f)({"a": np.eye(3, dtype=np.float32)})
    assert capsys.readouterr().out == ("p['a']: f32[3,3], 0 to 1, mean 0.3333\n@\n @\n  @\n")


def test_notebooks_get_pictures(monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(frontends, "notebook_display",
                        lambda: SimpleNamespace(display=shown.append))
    ft.debug.visualize(np.eye(2), "x")
    assert "data:image/png" in shown[0]._repr_html_() and not capsys.readouterr().out
