"""The page of examples/digits_in_a_browser without a browser: its C, and what is in its text."""

import base64
import ctypes
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import functrans as ft
from tests.examples.conftest import ROOT

sys.path.insert(0, str(ROOT / "examples" / "digits_in_a_browser"))


@pytest.fixture(scope="module")
def make_page():
    import make_page  # noqa: PLC0415  an example, not a package

    return make_page


def test_the_c_of_the_page_is_the_network(make_page, tmp_path):
    params = make_page.CNN.init(ft.random.key(0))
    make_page.write_c(params, tmp_path)
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", "-I.", "-o", "network.so", "classify.c",
                    "classify_runtime.c", "classify_constants.c", make_page.HERE / "network.c",
                    "-lm"], cwd=tmp_path, check=True)
    network = ctypes.CDLL(str(tmp_path / "network.so"))
    for function in (network.image_at, network.probabilities_at):
        function.restype = ctypes.c_void_p
    for image in make_page.load().test_images[:5]:
        ctypes.memmove(network.image_at(), np.ascontiguousarray(image).ctypes.data, 256)
        assert network.run() == 0
        found = np.ctypeslib.as_array((ctypes.c_float * 10).from_address(
            network.probabilities_at()))
        np.testing.assert_allclose(found, ft.nn.softmax(make_page.CNN.apply(params, image)),
                                   rtol=1e-4, atol=1e-6)


def test_the_page_needs_nothing_else(make_page):
    data = make_page.load()
    text = make_page.page(b"\0asm bytes", data)
    assert "http" not in text and "src=" not in text and "@DATA@" not in text
    stored = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))
    assert base64.b64decode(stored["wasm"]) == b"\0asm bytes"
    assert [d["label"] for d in stored["digits"][:10]] == [*range(10)]
    assert len(stored["digits"]) == make_page.STORED
    held_out = {tuple((16 * image).astype(int).ravel()) for image in data.test_images}
    assert {tuple(d["image"]) for d in stored["digits"]} <= held_out
    assert [d["label"] for d in stored["drawings"]] == [*range(10)]


def test_without_a_compiler_for_webassembly_it_says_what_to_install(make_page, monkeypatch):
    monkeypatch.setattr(make_page.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install ziglang"):
        make_page.zig_command()
