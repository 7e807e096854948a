"""Runs notebooks from top to bottom, each in a new kernel, and stores them with their outputs.

    python notebooks/execute.py [names]

Without names all but 03_gpu, whose outputs are those of a GPU, and 09_your_jax_code, which needs
libraries of JAX's (`make ecosystem` runs it). Programs are compiled anew, so that
the times shown are those of a first run; pictures are stored in 256 colours, a third of the bytes.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parent
NEEDS_GPU = "03_gpu"
NEEDS_LIBRARIES = "09_your_jax_code"
SECONDS_PER_CELL = 300
# where an environment has a library
LIBRARIES_FOLDER = re.compile(r"/[\w./-]*/site-packages/")
CELL_FILE = re.compile(r"/[\w./-]*/ipykernel_\d+/\d+\.py")


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a run, or CellExecutionError with the cell that failed."""
    notebook = nbformat.read(path, as_version=4)
    metadata = {**notebook.metadata}
    client = NotebookClient(
        notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", record_timing=False,
        # else a stream is cut where the kernel happened to flush it
        coalesce_streams=True, resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    # the run adds the version of Python
    notebook.metadata = nbformat.from_dict(
        {**metadata, "outputs_of": digest(notebook)} if path.stem == NEEDS_LIBRARIES else metadata)
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        # lines of progress, which a machine shows that takes more than a second to compile: taken
        # back they are empty
        cell.outputs = [out for out in cell.outputs
                        if out.get("data", {}).get("text/plain") != ""
                        and not (out.get("name") == "stderr"
                                 and out.text.startswith("functrans: compiling "))]
        for out in cell.outputs:
            if "text" in out:
                out.text = LIBRARIES_FOLDER.sub("", out.text)
            if "image/png" in out.get("data", {}):
                out.data["image/png"] = with_palette(out.data["image/png"])
            if "text/html" in out.get("data", {}):
                # the files of cells have names of the machine and the process
                out.data["text/html"] = CELL_FILE.sub("cell", out.data["text/html"])
            for kind in ("text/html", "text/plain"):
                if kind in out.get("data", {}):
                    out.data[kind] = LIBRARIES_FOLDER.sub("", out.data[kind])
    return notebook


def digest(notebook: nbformat.NotebookNode) -> str:
    """Of the code in all cells: outputs that are stored with it belong to it."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def kinds_of(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """Of each cell with code, what its outputs are."""
    return [[" ".join([out.output_type, *sorted(out.get("data", {}))]) for out in cell.outputs]
            for cell in notebook.cells if cell.cell_type == "code"]


def with_palette(png: str) -> str:
    """A picture on white in 256 colours, in base64 as it was."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
    white = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    smaller = io.BytesIO()
    # the method that errs least in the worst place: colour maps stay without steps
    white.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        smaller, "PNG", optimize=True)
    return base64.b64encode(smaller.getvalue()).decode()


def main() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    parser = argparse.ArgumentParser(description="Run notebooks and store their outputs.")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(names))
    options = parser.parse_args()
    others = [name for name in names if name not in (NEEDS_GPU, NEEDS_LIBRARIES)]
    for name in options.names or others:
        path = FOLDER / f"{name}.ipynb"
        with tempfile.TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache
            notebook = execute(path)
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
