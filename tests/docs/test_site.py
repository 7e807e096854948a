"""The site: every page is in it and says whom it is for, links lead somewhere, answers are near."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import API, DOCS, FIRST, contents, headings, links, pages, prose

NOTEBOOKS = DOCS.parent / "notebooks"
PAGES = pages()
CLICKS = 3

# What newcomers ask: the page and the heading of the answer, and what the answer has to say.
QUESTIONS = {
    "How do I get per-example gradients of my PyTorch model?":
        ("guide/coming_from_pytorch.md", "per-example-gradients-of-a-model", "ft.vmap(ft.grad("),
    "Why did it recompile?":
        ("guide/profiling.md", "is-it-compiled-and-how-often", "ft.explain_retrace"),
    "Why is this slow on my GPU?":
        ("guide/profiling.md", "why-is-this-slow-on-my-gpu", "device_put"),
    "Where does the NaN come from?":
        ("guide/checks.md", "checked-programs", "NotFiniteError: log gave"),
    "What does grad(abs) give at 0?":
        ("guide/sharp_bits.md", "derivatives-at-kinks", "jnp.abs"),
    "Why may I not write `if x > 0` in a jitted function?":
        ("guide/sharp_bits.md", "python-decides-while-a-function-is-traced", "jnp.where"),
    "Does my optax, flax or numpyro code run?":
        ("guide/jax_libraries.md", "jaxs-libraries-on-functrans", "install()"),
    "How do I train with differential privacy?":
        ("guide/dp_sgd.md", "training-with-differential-privacy", "per_sample.clipped_mean("),
    "Can I differentiate a while loop?":
        ("guide/loops.md", "while_loop", "ft.grad("),
    "How do I run my function without Python?":
        ("guide/export.md", "c", "to_c"),
    "Can I keep my jax imports?":
        ("guide/coming_from_jax.md", "coming-from-jax", "import functrans as jax"),
    "How do I print or debug inside a jitted function?":
        ("guide/debugging.md", "in-the-compiled-program", "ft.debug.print("),
    "Why is the first call slow, and how do I avoid it?":
        ("guide/profiling.md", "the-first-call", ".lower(of_floats("),
    "How do I save my parameters, and go on after a crash?":
        ("guide/training.md", "save-and-go-on", "ft.weights.load(file, like="),
    "How do I load data in shuffled batches?":
        ("guide/training.md", "data-in-shuffled-batches", "permutation("),
    "How do I use several GPUs?":
        ("guide/distributed.md", "training-on-all-of-them", 'ft.devices("gpu")'),
    "How do I write my own gradient?":
        ("guide/custom_rules.md", "backward-custom_vjp", "defvjp("),
    "How do I call SciPy or C code inside `jit`?":
        ("guide/custom_rules.md", "functions-of-other-libraries", "ft.pure_callback("),
    "How do I use float64?":
        ("guide/sharp_bits.md", "32-bits-are-the-default", "ft.default_dtypes("),
    "I run out of memory: what can I do?":
        ("guide/profiling.md", "too-much-memory", "memory_limit="),
    "How do I seed random numbers?":
        ("guide/sharp_bits.md", "random-numbers-repeat", "ft.random.split("),
    "Does my NumPy code that writes into arrays run?":
        ("guide/numpy_code.md", "numpy-code-that-writes-into-its-arrays", "ft.numpy_code"),
}


def name(page: Path) -> str:
    return str(page.relative_to(DOCS))


def is_written(page: Path) -> bool:
    """Whether a page is there, or is one of names, which the site's build writes."""
    return page.exists() or (page.parent == API and page.suffix in ("", ".rst"))


def test_every_page_is_in_a_table_of_contents():
    listed = {entry for page in PAGES for entry in contents(page)}
    every = {page.with_suffix("") for page in PAGES if page != FIRST}
    # a copy of each notebook is there while the site is built
    every |= {DOCS / "notebooks" / path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    every.add(API / "index")
    assert listed == every


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_begins_with_whom_it_is_for(page):
    title, audience = prose(page).split("\n\n")[:2]
    assert title.startswith("# ") and "\n" not in title
    assert audience.startswith("For ") and len(audience) > 20


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target, anchor in links(page):
        assert is_written(target), f"{target} is not there"
        assert not anchor or anchor in headings(target), f"{name(target)} has no #{anchor}"


def within(clicks: int) -> set[tuple[Path, str]]:
    """What a reader reaches by so many clicks on links in the text: pages, and their anchors."""
    reached = {(FIRST, "")}
    last = set(reached)
    for _ in range(clicks):
        last = {link for page, _ in last if page.suffix == ".md" for link in links(page)} - reached
        reached |= last
    return reached


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newcomer_finds_the_answer(question):
    page, heading, phrase = QUESTIONS[question]
    target = DOCS / page
    anchors = list(headings(target))
    assert phrase in headings(target)[heading]
    # an answer below the title is seen when the page opens
    places = {(target, heading)} | ({(target, "")} if anchors[0] == heading else set())
    assert places & within(CLICKS)


def test_the_questions_are_on_their_page():
    lines = (DOCS / "guide" / "questions.md").read_text().splitlines()
    asked = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert asked == list(QUESTIONS)


def test_the_array_module_has_one_name():
    """As in JAX: nobody who copies from two pages has to rename."""
    root = DOCS.parent
    texts = [*PAGES, *NOTEBOOKS.glob("*.ipynb"), *(root / "examples").glob("*.py"),
             root / "README.md"]
    sources = [path for folder in ("functrans", "primitives", "lowering")
               for path in (root / folder).rglob("*.py")]
    alias = re.compile(r"(?:(?:functrans|ft)\.numpy|functrans import numpy) as (?!jnp\b)")
    assert [name for name in texts if alias.search(name.read_text())] == []
    examples = re.compile(r"^ *(?:>>>|\.\.\.) .*", re.MULTILINE)
    assert [path for path in sources
            if any(map(alias.search, examples.findall(path.read_text())))] == []


def test_what_is_not_linked_is_not_found():
    assert (DOCS / "internals" / "overheads.md", "") not in within(1)
    assert not is_written(DOCS / "guide" / "nowhere.md")
