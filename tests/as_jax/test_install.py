"""What is found, what is not, who is told, and that nothing is left."""

import importlib.metadata
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import functrans as ft
from functrans import as_jax
from functrans.as_jax.__main__ import main


def test_names_are_ours(jax):
    import jax.numpy as jnp
    from jax import lax
    from jax.scipy.special import gammaln

    assert jax.grad is ft.grad and jnp.sin is ft.numpy.sin and lax.scan is ft.lax.scan
    assert gammaln is ft.scipy.special.gammaln
    assert isinstance(jnp.ones(2), jax.Array)
    assert jax.numpy.linalg is importlib.import_module("jax.numpy.linalg")
    assert ".".join(map(str, jax.__version_info__)) == jax.__version__


def test_all_names_of_a_module(jax):
    names = {}
    exec("from jax.numpy import *", names)
    assert names["cumsum"] is ft.numpy.cumsum
    assert "linalg" in dir(importlib.import_module("jax.numpy"))


def test_libraries_are_told_a_version(jax):
    import jaxlib

    assert importlib.metadata.version("jax") == jax.__version__ == jaxlib.__version__
    assert importlib.metadata.version("jaxlib") == jax.__version__


def test_nothing_is_left():
    with as_jax.install():
        assert as_jax.is_installed()
        assert as_jax.install() is as_jax.install()
        import jax

        assert jax.grad is ft.grad
    assert not as_jax.is_installed()
    assert "jax" not in sys.modules
    with pytest.raises(ImportError):
        importlib.import_module("jax")
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("jaxlib")
    assert ft.config.current() == ft.core.config.Config()


def test_a_file_that_is_not_there():
    with pytest.raises(SystemExit, match=r"there is no file 'nothing\.py'"):
        main(["nothing.py"])
    assert not as_jax.is_installed()


def test_libraries_on_it_are_forgotten(tmp_path, monkeypatch):
    (tmp_path / "on_jax.py").write_text("import jax.numpy as jnp\n")
    (tmp_path / "on_grad.py").write_text("from jax import grad\n")
    (tmp_path / "on_nothing.py").write_text("import numpy\n")
    monkeypatch.syspath_prepend(tmp_path)
    with as_jax.install():
        for name in ("on_jax", "on_grad", "on_nothing"):
            importlib.import_module(name)
    assert "on_jax" not in sys.modules and "on_grad" not in sys.modules
    assert sys.modules.pop("on_nothing") is not None


def test_jax_itself_is_not_replaced(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    with pytest.raises(as_jax.AsJaxError, match="imported already"):
        as_jax.install()
    assert not as_jax.is_installed()


def test_a_missing_name_says_who_asks(jax, tmp_path, monkeypatch):
    with pytest.raises(as_jax.MissingInJax, match=rf"{__name__}.*jax.numpy.no_such_name"):
        _ = jax.numpy.no_such_name
    assert not hasattr(jax, "no_such_name") and getattr(jax, "no_such_name", 3) == 3
    with pytest.raises(as_jax.MissingJaxName, match=r"jax\.no_such_name"):
        exec("from jax import no_such_name", {"__name__": "a_library.part"})
    with pytest.raises(as_jax.MissingJaxModule, match=r"jax\.experimental\.no_such_module"):
        importlib.import_module("jax.experimental.no_such_module")
    try:
        exec("from jax import no_such_name", {"__name__": "a_library.part"})
    except ImportError as error:
        assert str(error).startswith("a_library (a_library.part, line 1) asks for")


def test_a_refusal_says_why(jax):
    from jax.interpreters import mlir

    with pytest.raises(AttributeError, match="programs become C and Triton"):
        _ = mlir.ir
    with pytest.raises(ImportError, match="generators are named"):
        from jax.extend.random import define_prng_impl  # noqa: F401


def test_numpy_values_have_32_bits_until_x64_is_set(jax):
    import jax.numpy as jnp

    wide = np.arange(3.0)
    double = jax.jit(lambda x: x * 2)
    for _ in range(2):  # traced, then from the table
        assert double(wide).dtype == jnp.float32
        assert double(np.int64(3)).dtype == jnp.int32
    assert (jnp.ones(3) * wide).dtype == jnp.zeros(2, "float64").dtype == np.float32
    assert jax.make_jaxpr(lambda x: x + wide)(1.0).out_avals[0].dtype == np.float32
    assert jax.jit(lambda x: x + wide)(jnp.ones(3)).tolist() == [1.0, 2.0, 3.0]
    with jax.enable_x64(True):
        assert double(wide).dtype == jnp.sin(wide).dtype == jnp.ones(2).dtype == np.float64
    jax.config.update("jax_enable_x64", True)
    try:
        assert jax.config.jax_enable_x64 and jax.config.x64_enabled
        assert double(wide).dtype == np.float64
    finally:
        jax.config.update("jax_enable_x64", False)
    assert double(wide).dtype == np.float32


def test_threads_have_jaxs_settings():
    def dtypes():
        return [jax.numpy.ones(2).dtype, jax.numpy.asarray(np.ones(2)).dtype,
                jax.jit(lambda x: x)(np.arange(2)).dtype]

    with ThreadPoolExecutor(1) as before, ThreadPoolExecutor(1) as after, \
            ft.config.host_steps("allow"):
        before.submit(int).result()  # its thread began
        with as_jax.install():
            import jax

            for pool in (before, after):
                assert pool.submit(dtypes).result() == [np.float32, np.float32, np.int32]
            assert dtypes() == [np.float32, np.float32, np.int32]
            jax.config.update("jax_enable_x64", True)
            assert dtypes() == [np.float64, np.float64, np.int64]
            jax.config.update("jax_enable_x64", False)
        assert [p.submit(lambda: jax.numpy.asarray(np.ones(2)).dtype).result()
                for p in (before, after)] == [np.float64] * 2
        assert ft.config.current() == ft.core.config.Config(host_steps="allow")


def test_settings(jax):
    with pytest.raises(AttributeError, match="jax_no_such"):
        jax.config.update("jax_no_such", 1)
    jax.config.update("jax_log_compiles", True)
    assert jax.config.jax_log_compiles is True
    assert jax.config.read("jax_disable_jit") is False
    jax.config.update("jax_log_compiles", False)
    with jax.numpy_dtype_promotion("strict"), jax.log_compiles(), \
            pytest.raises(TypeError, match="float32 and int32"):
        jax.numpy.ones(2) + jax.numpy.arange(2)
    with pytest.raises(ValueError, match="always"):
        jax.threefry_partitionable(False)


def test_a_program_runs_as_on_jax(jax, tmp_path, monkeypatch, capsys):
    (tmp_path / "program.py").write_text(
        "import sys, jax, helper\nprint(__name__, jax.grad(helper.f)(3.0), sys.argv[1:])\n")
    (tmp_path / "helper.py").write_text("def f(x):\n    return x * x\n")
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    main([str(tmp_path / "program.py"), "-x"])
    assert capsys.readouterr().out == "__main__ 6.0 ['-x']\n"
    monkeypatch.chdir(tmp_path)
    main(["-m", "program", "y"])
    assert capsys.readouterr().out == "__main__ 6.0 ['y']\n"
    del sys.modules["helper"]


def test_how_to_run_a_program(capsys):
    with pytest.raises(SystemExit):
        main([])
    assert "python -m functrans.as_jax script.py" in capsys.readouterr().out


def test_tests_run_on_functrans(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import jax\ndef test_it():\n    assert jax.numpy.ones(2).sum() == 2\n")
    run = subprocess.run([sys.executable, "-m", "functrans.as_jax", "-m", "pytest", "-q", "-p",
                          "no:cacheprovider", tmp_path], capture_output=True, text=True, check=True)
    assert "1 passed" in run.stdout
