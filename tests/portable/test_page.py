"""The page of examples/digits_in_a_browser in Chromium, wide and narrow, light and dark."""

import html
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import functrans as ft
from tests.examples.conftest import ROOT
from tests.portable.machines import missing

sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "examples" / "digits_in_a_browser")]

pytestmark = pytest.mark.portable
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--virtual-time-budget=5000")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page, the network in it, and the digits."""
    import make_page  # noqa: PLC0415  an example, not a package

    assert not missing(["chromium"]), "apt-get install chromium"
    data, folder = make_page.load(), tmp_path_factory.mktemp("page")
    run = make_page.trained(data)
    make_page.write_c(run.params, folder)
    wasm = make_page.compile_to_wasm(folder, make_page.zig_command())
    path = folder / "index.html"
    path.write_text(make_page.page(wasm, data))
    return path, run, make_page


def browse(path, query, size, *more):
    return subprocess.run([*CHROMIUM, f"--window-size={size[0]},{size[1]}", *more,
                           f"{path.as_uri()}?{query}"], check=True, capture_output=True, text=True,
                          timeout=300).stdout


SIZES = [(1200, 760), (600, 720)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_digits_are_classified_as_in_python(size, made, record_property):
    path, run, make_page = made
    dom = browse(path, "test=1", size, "--dump-dom")
    text = re.search(r'<pre id="results">(.*?)</pre>', dom, re.DOTALL).group(1)
    results = json.loads(html.unescape(text))
    data = re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL).group(1)
    stored = json.loads(data)
    images = np.array([d["image"] for d in stored["digits"]], np.float32).reshape(-1, 8, 8) / 16
    scores = ft.vmap(make_page.CNN.apply, (None, 0))(run.params, images)
    np.testing.assert_allclose(results["digits"], ft.nn.softmax(scores), atol=1e-5)
    drawn = [int(np.argmax(p)) for p in results["drawings"]]
    assert drawn == [d["label"] for d in stored["drawings"]]
    assert run.accuracy > 0.96 and not results["overflows"]
    record_property("bytes of the page", path.stat().st_size)


@pytest.mark.parametrize("theme, page, card", [("light", (246, 245, 241), (255, 255, 255)),
                                               ("dark", (21, 23, 26), (30, 33, 38))])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_how_it_looks(size, theme, page, card, made, tmp_path):
    """Ink in the field, one long bar, and the colours of the theme."""
    from matplotlib.image import imread  # noqa: PLC0415  takes long to import

    path, _, _ = made
    shot = tmp_path / "shot.png"
    browse(path, f"theme={theme}&draw=2", size, f"--screenshot={shot}")
    pixels = (255 * imread(shot)[..., :3]).round().astype(int)
    assert pixels.shape == (size[1], size[0], 3)

    def share(colour):
        return (abs(pixels - colour).max(-1) <= 2).mean()

    text, blue = {"light": ((34, 37, 42), (29, 78, 216)),
                  "dark": ((231, 229, 223), (138, 180, 255))}[theme]
    assert share(page) > 0.3 and share(card) > 0.15
    assert 0.005 < share(text) < 0.1 and 0.002 < share(blue) < 0.02
