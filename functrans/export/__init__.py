"""Programs that outlive their source: files to save and load (`export`), and C (`to_c`).

See docs/export.md, and docs/export_format.md for the format.
"""

from functrans.core.errors import ExportError, explain_missing_names
from functrans.export.c_program import to_c
from functrans.export.exported import Exported, deserialize, export, load, save
from functrans.export.kernels import Kernel

__all__ = ["ExportError", "Exported", "Kernel", "deserialize", "export", "load", "save", "to_c"]

explain_missing_names(globals())
