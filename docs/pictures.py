"""Pictures of README.md and the site, but those of measurements (`benchmarks/page.py`).

    python docs/pictures.py

Thumbnails are pictures that the notebooks have stored. The page of `ft.explain` is taken in
Chromium, which has to be here, on light and dark ground.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import functrans as ft
import functrans.numpy as jnp

HERE = Path(__file__).parent
STATIC = HERE / "static"
# The cell of each notebook whose picture shows best what it is about.
THUMBNAILS = {
    "01_transforms": 21, "02_per_sample_gradients": 14, "03_gpu": 18, "04_from_jaxpr_to_kernel": 11,
    "05_shapes_and_cost": 19, "06_numpy_code_unchanged": 7, "07_research_recipes": 17,
    "08_many_devices": 3, "09_your_jax_code": 17,
}
WIDTH, HEIGHT = 400, 132
SCHEMES = {"light": 1, "dark": 0}  # as Chromium numbers them
SHOWN = 1120, 600


def loss(w, x, y):
    return ((jnp.tanh(x @ w) - y) ** 2).sum()


def norms(w, xs, ys):
    g = ft.vmap(ft.grad(loss), (None, 0, 0))(w, xs, ys)
    return (g ** 2).sum((1, 2))


def thumbnail(notebook: str, cell: int) -> Image.Image:
    """A stored picture on white, as large as the others."""
    stored = json.loads((HERE.parent / "notebooks" / f"{notebook}.ipynb").read_text())
    outputs = stored["cells"][cell]["outputs"]
    (png,) = [out["data"]["image/png"] for out in outputs if "image/png" in out.get("data", {})]
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    picture.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    ground = Image.new("RGB", (WIDTH, HEIGHT), "white")
    ground.paste(picture, ((WIDTH - picture.width) // 2, (HEIGHT - picture.height) // 2))
    return ground.quantize(128, dither=Image.Dither.NONE)


def explained():
    """What `ft.explain` says of a small program."""
    f32 = lambda *shape: ft.ShapeDtypeStruct(shape, "float32")
    return ft.explain(norms, f32(784, 128), f32(256, 784), f32(256, 128), target="cpu")


def photograph(source: Path, path: Path, scheme: int) -> None:
    """A picture of a page in Chromium, at twice the resolution."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("The picture of ft.explain needs Chromium: apt-get install chromium")
    subprocess.run([chromium, "--headless", "--no-sandbox", "--hide-scrollbars",
                    "--force-device-scale-factor=2", f"--screenshot={path}",
                    f"--blink-settings=preferredColorScheme={scheme}",
                    "--window-size={},{}".format(*SHOWN), source.as_uri()],
                   check=True, capture_output=True)
    picture = Image.open(path).convert("RGB")
    picture.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    for notebook, cell in THUMBNAILS.items():
        thumbnail(notebook, cell).save(STATIC / f"{notebook}.png", optimize=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        explained().save(page)
        for theme, scheme in SCHEMES.items():
            photograph(page, STATIC / f"explain-{theme}.png", scheme)


if __name__ == "__main__":
    main()
