"""docs/benchmarks.md and its picture are what benchmarks/results/ say."""

import copy

import page
import page_figure
import pytest

STALE = "run `python benchmarks/page.py` and commit what it writes"


def shown_figures():
    return page_figure.figures(page.read("per-sample-amd-epyc"), page.read("programs-amd-epyc"),
                               page.read("programs-h100"))


def test_the_page_is_what_was_measured():
    assert page.PAGE.read_text() == page.page(), STALE


@pytest.mark.parametrize("theme", page_figure.PICTURES)
def test_the_picture_shows_what_was_measured(theme):
    svg = (page.STATIC / f"benchmarks-{theme}.svg").read_text()
    assert page_figure.described(svg) == shown_figures(), STALE


def test_another_result_is_another_picture():
    results = page.read("programs-h100")
    row = next(r for r in results["rows"] if "jax" in r["seconds"])
    changed = copy.deepcopy(results)
    changed["rows"][results["rows"].index(row)]["seconds"]["functrans"] *= 2
    others = page.read("per-sample-amd-epyc"), page.read("programs-amd-epyc")
    assert page_figure.figures(*others, results) != page_figure.figures(*others, changed)


def test_every_result_is_on_the_page_or_of_the_repository_itself():
    files = {path.stem for path in page.RESULTS.glob("*.json")}
    named = {section.file for section in page.SECTIONS} | {name for name, _ in page.SUITES}
    # workloads of another card, files that a program goes through, and what a picture is drawn of
    assert files - named == {"devices-timeline-h100", "gpu-h200", "walks-after",
                             "walks-before"}, \
        "benchmarks/page.py, SECTIONS: a new file of results has a table"


def test_what_is_slower_is_bold():
    assert page.ratio(2.0, 1.0) == "**2**" and page.ratio(1.0, 2.0) == "0.5"
    assert page.ratio(None, 1.0) == ""
    row = {"title": "a", "unit": "GB/s", "amount": 2e9, "seconds": {"functrans": 0.5, "jax": 0.25}}
    lines = list(page.timed({"rows": [row]}))
    assert lines[-1] == "| a | 4 GB/s | 8 GB/s | **2** |"
