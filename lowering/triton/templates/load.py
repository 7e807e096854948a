"""Kernels of templates as functions of Triton, and as machine code."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from functrans.lowering.triton.templates.kernel import TemplateKernel

__all__ = ["compiled", "function"]


def function(kernel: TemplateKernel, folder: str | Path) -> Any:
    """The function of a kernel: Triton reads its source from a file, which stays in `folder`."""
    text = kernel.text
    if os.environ.get("TRITON_INTERPRET") == "1":
        text = text.replace("import device_math as fm", "import host_math as fm")
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    module_name = f"{kernel.name}_{digest}"
    path = Path(folder) / f"{module_name}.py"
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[module_name] = module
    return getattr(sys.modules[module_name], kernel.name)


def compiled(kernel: TemplateKernel, folder: str | Path, arch: int = 90) -> Any:
    """The kernel compiled for an architecture: no GPU is needed. `.asm["cubin"]` is the code."""
    import triton  # noqa: PLC0415

    source = triton.compiler.ASTSource(function(kernel, folder), kernel.signature, {},
                                       kernel.attributes)
    target = triton.backends.compiler.GPUTarget("cuda", arch, 32)
    return triton.compile(source, target=target, options=kernel.options)
