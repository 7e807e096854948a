"""`draw`: the graph of a program as a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from functrans.core.errors import ArgumentError, public, shown
from functrans.inspect.costs import costs_of
from functrans.inspect.draw.graph import MOST_EQUATIONS, MOST_NODES, count_of, shape_of_kernels
from functrans.inspect.draw.lines import shape_of_lines
from functrans.inspect.draw.svg import svg_of
from functrans.inspect.explain.explanation import lowered_of, report_of
from functrans.inspect.pages import fragment, save_page
from functrans.typing import PyTree

__all__ = ["Drawing", "draw"]


class Drawing:
    """A picture of a program, shown by notebooks with search and zoom; `svg` is its text."""

    def __init__(self, svg: str, name: str = "program") -> None:
        self.svg = svg
        self.name = name

    def __repr__(self) -> str:
        return f'<drawing of {self.name}: a notebook shows it, .save("program.html") writes it>'

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        tools = ('<div class="steps"><button type="button" data-zoom="1.25">larger</button>'
                 '<button type="button" data-zoom="0.8">smaller</button>'
                 '<button type="button" data-zoom="0">whole</button>'
                 '<label>Find <input type="search" data-find placeholder="line, operation, type">'
                 '</label><button type="button" data-next>next</button>'
                 '<span class="dim" data-found aria-live="polite"></span></div>')
        body = f'{tools}<div class="picture" tabindex="0">{self.svg}</div>'
        return fragment(body, ["draw.js"], f"drawing of {self.name}")

    @public
    def save(self, path: str | Path) -> None:
        """Write the picture to a file that ends with `.svg`, or with search and zoom to `.html`.

        Raises ArgumentError for another name.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".html":
            save_page(path, f"drawing of {self.name}", self._repr_html_())
            return
        if suffix != ".svg":
            raise ArgumentError(f"the picture is SVG, and {shown(str(path))} is no name for that.",
                                fix='save("program.svg"), for browsers and Inkscape, or '
                                    'save("program.html") with search and zoom')
        Path(path).write_text(self.svg, encoding="utf-8")


@public
def draw(f: Callable[..., Any], *args: PyTree, target: str | None = None, **kwargs: PyTree
         ) -> Drawing:
    """The graph of `f` as it is compiled: a rounded box for each kernel, what it computes inside.

    Arguments are green, results orange; long chains of elementwise operations are one node, and
    pointing at it tells the equations and the lines. Bodies of loops are inside of these. A program
    of more than 150 operations has a box for each line of the user instead, and layers that repeat
    are there once, with their number. Arguments as for `ft.explain`. Raises whatever tracing
    raises.

    >>> import functrans as ft
    >>> x = ft.ShapeDtypeStruct((8, 8), "float32")
    >>> picture = ft.draw(lambda x: ft.numpy.tanh(x @ x), x, target="cpu")
    >>> picture.svg[:4], "matmul" in picture.svg
    ('<svg', True)
    """
    report = report_of(lowered_of(f, args, kwargs, target), f, args, kwargs)
    shape = None
    if len(report.simplified.eqns) <= MOST_EQUATIONS:
        shape = shape_of_kernels(report)
    if shape is None or count_of(shape) > MOST_NODES:
        shape = shape_of_lines(report, costs_of(report))
    return Drawing(svg_of(shape), report.name)
