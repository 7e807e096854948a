"""Programs that outlive their source: files to save and load (`export`), and C (`to_c`).

See docs/guide/export.md, and docs/reference/export_format.md for the format.
"""

from functrans.core.errors import ExportError, publish
from functrans.export.c_program import to_c
from functrans.export.container import FORMAT_VERSION
from functrans.export.exported import Exported, deserialize, export, load, save
from functrans.export.kernels import Kernel
from functrans.export.nodes import (
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from functrans.export.symbols import (
    SymbolicScope,
    default_export_platform,
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_shape,
)

# a file has one format: that of calls is the version of the whole
maximum_supported_calling_convention_version = FORMAT_VERSION
minimum_supported_calling_convention_version = FORMAT_VERSION

__all__ = ["ExportError", "Exported", "Kernel", "SymbolicScope", "default_export_platform",
           "deserialize", "export", "is_symbolic_dim", "load",
           "maximum_supported_calling_convention_version",
           "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
           "register_pytree_node_serialization", "save", "symbolic_args_specs", "symbolic_shape",
           "to_c"]

publish(globals(), ["default_export_platform", "deserialize", "is_symbolic_dim"])
