"""A page that reads handwritten digits: trained here, and run in the browser as WebAssembly.

The CNN of examples/digits.py is trained, written as C by `ft.export.to_c`, compiled to WebAssembly
by the Zig of the wheel ziglang, and put into one HTML file that needs nothing else:

    pip install 'functrans[demo,compiler]'
    python examples/digits_in_a_browser/make_page.py [page.html]
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from digits import CNN, TRAINING_SEED, load  # noqa: E402
from training import Data, Run, train  # noqa: E402

import functrans as ft  # noqa: E402

STEPS, RATE = 600, 1e-2
STORED = 40
FLAGS = ("-O2", "-msimd128", "-fno-sanitize=undefined", "-w")
# a library without a main that asks nothing of its host
LINK = ("-mexec-model=reactor", "-Wl,--strip-all")

# Lines that somebody might draw, on a field of 320 x 320.
DRAWINGS = (
    (0, [[(160, 60), (110, 90), (100, 160), (110, 230), (160, 260), (210, 230), (220, 160),
          (210, 90), (160, 60)]]),
    (1, [[(140, 100), (170, 60), (170, 260)]]),
    (2, [[(105, 105), (130, 65), (180, 60), (215, 95), (205, 140), (105, 255), (225, 255)]]),
    (3, [[(110, 75), (160, 55), (205, 85), (200, 130), (155, 150), (205, 175), (215, 220),
          (165, 260), (105, 240)]]),
    (4, [[(165, 60), (95, 180), (225, 180)], [(190, 130), (185, 265)]]),
    (5, [[(210, 62), (120, 62), (112, 145), (165, 130), (208, 160), (210, 215), (165, 258),
          (105, 240)]]),
    (6, [[(190, 60), (135, 120), (108, 190), (120, 240), (160, 260), (205, 240), (210, 195),
          (170, 165), (120, 190)]]),
    (7, [[(100, 65), (220, 65), (150, 260)]]),
    (8, [[(160, 155), (110, 115), (120, 75), (160, 58), (200, 75), (210, 115), (160, 155),
          (108, 200), (115, 245), (160, 262), (205, 245), (212, 200), (160, 155)]]),
    (9, [[(205, 120), (160, 155), (115, 130), (115, 85), (155, 60), (200, 75), (205, 120),
          (200, 190), (180, 262)]]),
)


def trained(data: Data) -> Run:
    """The network, which also learns from the digits moved by a pixel to either side: what people
    draw is no better centred."""
    images, empty = data.train_images, np.zeros_like(data.train_images[:, :, :1])
    moved = [images, np.concatenate([images[:, :, 1:], empty], 2),
             np.concatenate([empty, images[:, :, :-1]], 2)]
    more = data._replace(train_images=np.concatenate(moved),
                         train_labels=np.tile(data.train_labels, len(moved)))
    return train(CNN, more, TRAINING_SEED, STEPS, RATE)


def write_c(params, folder: Path) -> None:
    """The C of the trained network: probabilities of the ten digits for one image."""

    def classify(image):
        return ft.nn.softmax(CNN.apply(params, image))

    ft.export.to_c(classify, [ft.ShapeDtypeStruct((8, 8), "float32")], folder, name="classify")


def compile_to_wasm(folder: Path, zig: Sequence[str]) -> bytes:
    """The WebAssembly of what `write_c` wrote there and of network.c."""
    sources = ["classify.c", "classify_runtime.c", "classify_constants.c"]
    subprocess.run([*zig, "cc", "-target", "wasm32-wasi", *FLAGS, *LINK, "-I.", "-o",
                    "network.wasm", *sources, str(HERE / "network.c")], cwd=folder, check=True)
    return (folder / "network.wasm").read_bytes()


def page(wasm: bytes, data: Data) -> str:
    """The text of the page, with some of the digits that were held out."""
    digits = [{"label": int(label), "image": (16 * image).astype(int).ravel().tolist()}
              for image, label in zip(data.test_images[:STORED], data.test_labels, strict=False)]
    # one of each comes first: they are shown
    firsts = [next(d for d in digits if d["label"] == k) for k in range(10)]
    stored = {"wasm": base64.b64encode(wasm).decode(),
              "digits": firsts + [d for d in digits if all(d is not f for f in firsts)],
              "drawings": [{"label": label, "lines": lines} for label, lines in DRAWINGS]}
    return (HERE / "page.html").read_text().replace("@DATA@", json.dumps(stored))


def zig_command() -> list[str]:
    if importlib.util.find_spec("ziglang") is None:
        raise SystemExit("The compiler for WebAssembly is missing: pip install ziglang")
    return [sys.executable, "-m", "ziglang"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Write a page that reads handwritten digits.")
    parser.add_argument("page", type=Path, nargs="?",
                        default=HERE.parent / "output" / "digits_in_a_browser" / "index.html")
    target = parser.parse_args().page
    zig, data = zig_command(), load()
    run = trained(data)
    with tempfile.TemporaryDirectory() as folder:
        write_c(run.params, Path(folder))
        wasm = compile_to_wasm(Path(folder), zig)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(wasm, data))
    count = sum(np.size(leaf) for leaf in ft.tree.leaves(run.params))
    print(f"{run.accuracy:.1%} of the digits that were held out are right. {count:,} parameters, "
          f"{len(wasm):,} bytes of\nWebAssembly, in {target} of {target.stat().st_size:,} bytes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
