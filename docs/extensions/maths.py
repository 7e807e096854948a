"""Formulas as MathML, made by docutils while the site is built: no script and no network.

A formula that docutils cannot read is a warning, and `make docs` fails.
"""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

log = logging.getLogger(__name__)


def mathml(node: nodes.math | nodes.math_block) -> str:
    try:
        return str(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    except MathError as error:
        log.warning("formula %r: %s", node.astext(), error, location=node)
        return f"<code>{node.astext()}</code>"


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    # a line is not broken between a formula and the comma behind it
    self.body.append(f"{mathml(node)}&#8288;")
    raise nodes.SkipNode


def visit_math_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{mathml(node)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
