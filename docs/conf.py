"""The site, by Sphinx: `make docs` writes build/docs/index.html.

Pages are Markdown (MyST). Notebooks are shown with their stored outputs and are not run. The pages
of the reference's names are written by `extensions/api_pages.py` from what modules publish.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "functrans"
author = "functrans authors"
copyright = author
release = re.search(r'"(.*?)"', (HERE.parent / "functrans" / "version.py").read_text())[1]
version = release

extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "api_pages", "maths", "notebook_pages",
]
exclude_patterns = ["README.md", "extensions"]
root_doc = "index"
templates_path: list[str] = []

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
html_math_renderer = "mathml"
nb_execution_mode = "off"
nb_merge_streams = True
# what a notebook stores for pages without scripts stands in for widgets
suppress_warnings = ["mystnb.unknown_mime_type"]

autodoc_typehints = "none"
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "functrans"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#0a5c8f", "color-brand-content": "#0a5c8f"},
    "dark_css_variables": {"color-brand-primary": "#6cb8e8", "color-brand-content": "#6cb8e8"},
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
