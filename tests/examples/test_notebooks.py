"""Every notebook runs from top to bottom in a new kernel, and shows what it promises."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SECONDS_PER_CELL = 60
PRINTED = {
    # no array of per-sample gradients is left, and the compiler says so; wrong labels are found
    "02_per_sample_gradients": ["after:\n   none\n", "never made", "precision 9"],
    # one program for all sizes, guards in words, costs as formulas
    "05_shapes_and_cost": ["by default:              2 compilations", "Mod(s0, 2) == 0",
                           "B is 64 in argument x", "24*B*D**2*S", "at S = 6*D"],
}


def run(path: Path) -> nbformat.NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", resources=resources
    )
    return client.execute()


def outputs_of_type(notebook: nbformat.NotebookNode, mime: str) -> list[str]:
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return [out.data[mime] for out in outputs if mime in out.get("data", {})]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path):
    """nbclient raises CellExecutionError, with the cell and its traceback, where one fails."""
    notebook = run(path)
    assert outputs_of_type(notebook, "image/png"), "no picture was drawn"
    rendered = outputs_of_type(notebook, "text/html")
    assert any("lambda" in html for html in rendered), "no jaxpr was rendered"
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    text = "".join(out.get("text", "") for out in outputs)
    assert not [line for line in PRINTED.get(path.stem, []) if line not in text]


KEPT = "03_gpu"
"""The notebook that is kept with its outputs, from a GPU; others are stored without."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored_where_a_gpu_made_them(path):
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    outputs = [out for cell in cells for out in cell.outputs]
    if path.stem != KEPT:
        assert not outputs
        return
    text = "".join(out.get("text", "") for out in outputs)
    assert text.startswith("gpu:0 - NVIDIA") and "Error" not in text
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
