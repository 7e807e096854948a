"""Every notebook runs in a new kernel, shows what it promises, and is stored with its outputs."""

import re

import execute
import nbformat
import pytest

NOTEBOOKS = sorted(execute.FOLDER.glob("*.ipynb"))
MAX_BYTES = 300_000
PRINTED = {
    # no array of per-sample gradients is left, and the compiler says so; wrong labels are found
    "02_per_sample_gradients": ["after:\n   none\n", "never made", "precision 9"],
    # one program for all sizes, guards in words, costs as formulas
    "05_shapes_and_cost": ["by default:              2 compilations", "Mod(s0, 2) == 0",
                           "B is 64 in argument x", "24*B*D**2*S", "at S = 6*D"],
    # an unchanged program, its best path, and what is refused
    "06_numpy_code_unchanged": ["cells on the path", "writes into an argument of writes_into_its"],
    # memory without iterations, rates that are found, a density that is one, and a sparse Hessian
    "07_research_recipes": ["times that of the implicit layer", "true 1.100",
                            "over the square: 1.0", "steps; the Hessian has 499,994 elements"],
    # an unmodified training, gradients of samples, a solver's gradients, and lines of mistakes
    "09_your_jax_code": ["it is functrans: True True", "never made", "pulls most: 7",
                         "in Charges.__call__", "in Bag.__call__", "in draining"],
    # what moves and what does not
    "08_many_devices": ["nobody talks\npsum over ('x',): 16 bytes", "lie as PartitionSpec('i')"],
}


def outputs_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [out for cell in notebook.cells for out in cell.get("outputs", [])]


def text_of(notebook: nbformat.NotebookNode) -> str:
    return "".join(out.get("text", "") for out in outputs_of(notebook))


def outputs_of_type(notebook: nbformat.NotebookNode, mime: str) -> list[str]:
    return [out.data[mime] for out in outputs_of(notebook) if mime in out.get("data", {})]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_for_readers(path):
    """It begins with what NumPy's users need, ends with exercises, and reads data, not texts."""
    cells = nbformat.read(path, as_version=4).cells
    assert "*For those who know NumPy only:*" in cells[0].source
    assert cells[-1].source.startswith("## Exercises")
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert not [source for source in code if re.search(r"\bimport re\b|as_text\(", source)]
    # pictures are drawn by plots.py
    assert not [source for source in code if "import matplotlib" in source]
    assert max(source.count("\n") for source in code) < 60


# its libraries are in no environment of these tests: `make ecosystem` runs it
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS
                                  if path.stem != execute.NEEDS_LIBRARIES],
                         ids=lambda path: path.stem)
def test_notebook_runs(path):
    """nbclient raises CellExecutionError, with the cell and its traceback, where one fails."""
    notebook = execute.execute(path)
    assert outputs_of_type(notebook, "image/png"), "no picture was drawn"
    rendered = outputs_of_type(notebook, "text/html")
    assert any("lambda" in html for html in rendered), "no jaxpr was rendered"
    missing = [line for line in PRINTED.get(path.stem, []) if line not in text_of(notebook)]
    assert not missing
    if path.stem != execute.NEEDS_GPU:
        stored = nbformat.read(path, as_version=4)
        assert execute.kinds_of(stored) == execute.kinds_of(notebook), \
            f"python notebooks/execute.py {path.stem}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_with_its_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [line for line in PRINTED.get(path.stem, []) if line not in text_of(notebook)]
    assert {out.get("name", "stdout") for out in outputs_of(notebook)} == {"stdout"}, "a warning"
    assert not [out for out in outputs_of(notebook) if out.output_type == "error"]
    assert not [out for out in outputs_of(notebook) if out.get("data", {}).get("text/plain") == ""]
    shown = [text_of(notebook), *outputs_of_type(notebook, "text/html"),
             *outputs_of_type(notebook, "text/plain"), *outputs_of_type(notebook, "image/svg+xml")]
    places = re.compile(r"(?<![\w./<])/(?:home|root|tmp|usr|opt|work|Users|var)/\S*|site-packages")
    assert not [found for text in shown for found in places.findall(text)]
    assert path.stat().st_size < MAX_BYTES
    if path.stem == execute.NEEDS_LIBRARIES:
        assert notebook.metadata["outputs_of"] == execute.digest(notebook), \
            "make ecosystem; .venv-ecosystem/bin/python notebooks/execute.py " + path.stem
    if path.stem == execute.NEEDS_GPU:
        text = text_of(notebook)
        assert text.startswith("gpu:0 - NVIDIA") and "Error" not in text


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["03_gpu", "04_from_jaxpr_to_kernel"])
def test_notebooks_run_without_triton(name, tmp_path, monkeypatch):
    startup = tmp_path / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "no_triton.py").write_text("import sys; sys.modules['triton'] = None")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = execute.execute(execute.FOLDER / f"{name}.ipynb")
    assert "skipped, as Triton is not installed" in text_of(notebook)
