"""Parameters in files of the safetensors format, by the library of that name.

A tree is a flat mapping from names to arrays: keys, indices and attributes joined by dots. Large
trees are several files beside an index, as model hubs have them. Loading maps files into memory: no
array is copied, and what is not read is not loaded.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from functrans import _runtime
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.communicator import processes, this_process
from functrans.core.errors import ArgumentError, KeyTypeError, TreeMismatchError, publish
from functrans.core.sharding import NamedSharding
from functrans.core.source import user_source
from functrans.device import find_device, place_of
from functrans.environment import make_array_from_callback
from functrans.numpy import asarray
from functrans.tree import flatten_with_path, unflatten
from functrans.typing import Array, DeviceLike

try:
    import safetensors
    import safetensors.numpy
except ImportError as missing:
    raise ImportError("functrans.weights needs the library safetensors: "
                      "pip install safetensors") from missing

__all__ = ["load", "load_parts", "names_of", "save", "save_parts"]

T = TypeVar("T")
_INDEX = "model.safetensors.index.json"
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
_DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16,
    "F32": np.float32, "F64": np.float64, "C64": np.complex64, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
}
_SAVED = {np.dtype(dtype) for dtype in _DTYPES.values()}


def names_of(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their names in a file, in the order of the tree.

    Raises ArgumentError where two leaves have the same name.

    >>> import functrans as ft
    >>> list(ft.weights.names_of({"layers": [{"w": 1}, {"w": 2}], "b": 3}))
    ['b', 'layers.0.w', 'layers.1.w']
    """
    named: dict[str, Any] = {}
    for path, leaf in flatten_with_path(tree)[0]:
        name = ".".join([str(next(getattr(key, field) for field in ("key", "idx", "name")
                                  if hasattr(key, field))) for key in path])
        if name in named:
            raise ArgumentError(f"two leaves have the name {name!r}.", where=user_source(),
                                fix="keys without dots")
        named[name] = leaf
    return named


def save(path: str | Path, tree: Any, *, metadata: Mapping[str, str] | None = None,
         shard_size: str | int | None = None) -> list[Path]:
    """Write the arrays of a tree to a file; the files that were written.

    With `shard_size` ("5GB", or bytes) path is a folder, with files of at most that size, unless an
    array alone is larger, and an index. Raises ArgumentError for sizes that cannot be read,
    KeyTypeError for random keys, and DTypeError for dtypes that the format has not got.

    >>> import functrans as ft, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> written = ft.weights.save(file, {"w": ft.numpy.ones((2, 3))})
    >>> ft.weights.load(file)["w"].shape
    (2, 3)
    """
    arrays = {name: _host_array(name, leaf) for name, leaf in names_of(tree).items()}
    path = Path(path)
    text = {str(k): str(v) for k, v in (metadata or {}).items()}
    if shard_size is None:
        safetensors.numpy.save_file(arrays, path, metadata=text or None)
        return [path]
    shards = list(_shards(arrays, _bytes(shard_size)))
    path.mkdir(parents=True, exist_ok=True)
    files = [path / f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
             for i in range(len(shards))]
    for file, shard in zip(files, shards, strict=True):
        safetensors.numpy.save_file(shard, file, metadata=text or None)
    index = {"metadata": {"total_size": sum(a.nbytes for a in arrays.values()), **text},
             "weight_map": {name: file.name for file, shard in zip(files, shards, strict=True)
                            for name in shard}}
    (path / _INDEX).write_text(json.dumps(index, indent=2) + "\n")
    return [*files, path / _INDEX]


def _host_array(name: str, leaf: Any) -> np.ndarray[Any, Any]:
    x = asarray(leaf)
    if x.dtype in dtypes.KEY_DTYPES:
        raise KeyTypeError(f"{name!r} is a random key.", where=user_source(),
                           fix="functrans.random.key_data(key)")
    array = np.asarray(x)
    if array.dtype not in _SAVED:
        raise ArgumentError(f"{name!r} has dtype {array.dtype}, which safetensors files have not.",
                            where=user_source(), fix='x.astype("float32")')
    return array if array.flags.c_contiguous else array.copy()


def _bytes(size: str | int) -> int:
    if isinstance(size, int) and size > 0:
        return size
    text = str(size).strip().upper()
    try:
        return int(float(text[:-2]) * _UNITS[text[-2:]])
    except (KeyError, ValueError):
        raise ArgumentError(f"shard_size={size!r} is no size.", where=user_source(),
                            fix='"5GB", "500MB", or a number of bytes') from None


def _shards(arrays: dict[str, np.ndarray[Any, Any]],
            most: int) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    shard: dict[str, np.ndarray[Any, Any]] = {}
    size = 0
    for name, array in arrays.items():
        if shard and size + array.nbytes > most:
            yield shard
            shard, size = {}, 0
        shard[name] = array
        size += array.nbytes
    yield shard


def load(path: str | Path, like: Any = None, *, device: DeviceLike | None = None) -> Any:
    """The arrays of a file, of a folder with an index, or of an index, as a tree.

    `like` gives the structure, and the shapes and dtypes that are expected (arrays or
    ShapeDtypeStruct); without it names with dots become nested dicts. On a CPU arrays stay in the
    mapped file. Raises ArgumentError for files that are not whole, and TreeMismatchError, with the
    names, where the file has others than `like`, or other shapes or dtypes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = ft.weights.save(f"{folder}/w.safetensors", {"w": jnp.ones(2)})
    ...     loaded = ft.weights.load(f"{folder}/w.safetensors")
    >>> loaded["w"]
    Array([1., 1.], dtype=float32)
    """
    arrays: dict[str, Array] = {}
    for file in _files(Path(path)):
        arrays.update(_mapped(file))
    if device is not None:
        place = place_of(find_device(device))
        arrays = {name: _runtime.place_array(x, place) for name, x in arrays.items()}
    return _nested(arrays) if like is None else _restored(arrays, like, path)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(path.glob("*.safetensors.index.json")) or sorted(path.glob("*.safetensors"))
        if not found:
            raise ArgumentError(f"{path} has no safetensors files.", where=user_source())
        path = found[0]
        if path.suffix != ".json":
            return found
    if path.suffix == ".json":
        names = json.loads(path.read_text())["weight_map"].values()
        return [path.parent / name for name in dict.fromkeys(names)]
    return [path]


def _mapped(file: Path) -> dict[str, Array]:
    """The arrays of a file, on its memory."""
    if not file.is_file():
        raise ArgumentError(f"there is no file {file}.", where=user_source())
    try:  # the library checks the header and that all offsets are within the file
        with safetensors.safe_open(file, "numpy"):
            pass
    except safetensors.SafetensorError as error:
        raise ArgumentError(f"{file} is no whole safetensors file: {error}.",
                            where=user_source()) from None
    with file.open("rb") as opened:
        memory = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(memory[:8], "little")
    header = json.loads(memory[8:start])
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _DTYPES:
            raise ArgumentError(f"{name!r} in {file} has dtype {entry['dtype']}.",
                                where=user_source(), fix="one of " + ", ".join(_DTYPES))
        dtype, (begin, end) = np.dtype(_DTYPES[entry["dtype"]]), entry["data_offsets"]
        array = np.frombuffer(memory, dtype, (end - begin) // dtype.itemsize, start + begin) \
            if end > begin else np.empty(0, dtype)
        if array.ctypes.data % dtype.alignment:  # the library aligns what it writes
            array = array.copy()
        found[name] = _runtime.wrap(array.reshape(entry["shape"]))
    return found


def save_parts(folder: str | Path, tree: Any) -> Path:
    """Write the parts that this process has of the arrays of a tree; the file that was written.

    Each process of several writes a file of its own into the folder, which all of them share: parts
    that several devices have are written once, arrays that are not in shards by process 0. The file
    appears when it is whole. Errors are those of `save`.

    >>> import functrans as ft, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> ft.weights.save_parts(folder, {"w": ft.numpy.arange(4.0)}).name
    'parts-00000-of-00001.safetensors'
    >>> ft.weights.load_parts(folder, {"w": ft.ShapeDtypeStruct((4,), "float32")})["w"].tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for name, leaf in names_of(tree).items():
        x = asarray(leaf)
        in_shards = isinstance(x.sharding, NamedSharding)
        for shard in x.addressable_shards:
            if shard.replica_id == 0 and (in_shards or this_process() == 0):
                bounds = [s.indices(n)[:2] for s, n in zip(shard.index, x.shape, strict=True)]
                arrays[f"{name}[{','.join(f'{a}:{b}' for a, b in bounds)}]"] = _host_array(
                    name, shard.data)
    file = folder / f"parts-{this_process():05d}-of-{processes():05d}.safetensors"
    unfinished = file.with_suffix(f".{os.getpid()}")
    safetensors.numpy.save_file(arrays, unfinished)
    os.replace(unfinished, file)
    return file


def load_parts(folder: str | Path, like: T) -> T:
    """The tree whose parts `save_parts` wrote, in the shardings of `like`.

    `like` is a tree of arrays or of ShapeDtypeStructs with shardings, which need not be those that
    were saved: another mesh, another number of processes. Each process reads what it needs. Raises
    ArgumentError where a process did not write its file, or files are of several runs, and
    TreeMismatchError for other names, shapes and dtypes.

    >>> import tempfile
    >>> folder, params = tempfile.mkdtemp(), {"w": ft.numpy.arange(4.0)}
    >>> _ = ft.weights.save_parts(folder, params)
    >>> ft.weights.load_parts(folder, params)["w"].tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    folder = Path(folder)
    files = sorted(folder.glob("parts-*-of-*.safetensors"))
    counts = sorted({int(f.stem.rpartition("-")[2]) for f in files})
    if len(counts) != 1 or len(files) != counts[0]:
        raise ArgumentError(
            f"{folder} has {len(files)} files of parts, of runs of "
            f"{' and '.join(map(str, counts)) or 'no'} processes.", where=user_source(),
            why="each process writes one, and a folder is for one run.",
            fix="a new folder for each save; all processes call save_parts")
    pieces: dict[str, list[_Piece]] = {}
    for file in files:
        for key, array in _mapped(file).items():
            name, _, text = key[:-1].rpartition("[")
            bounds = tuple([(int(a), int(b)) for a, b in
                            (part.split(":") for part in text.split(",") if part)])
            pieces.setdefault(name, []).append((bounds, np.asarray(array)))
    wanted = names_of(like)
    if missing := sorted(wanted.keys() - pieces.keys()):
        raise TreeMismatchError(f"{folder} has no {missing[0]!r}.", where=user_source(),
                                why=f"it has {', '.join(sorted(pieces)[:8])}.")
    found = []
    for name, leaf in wanted.items():
        aval = get_aval(leaf)
        sharding = leaf.sharding if hasattr(leaf, "sharding") else None
        found.append(make_array_from_callback(
            aval.shape, sharding if isinstance(sharding, NamedSharding) else None,
            partial(_assembled, name, pieces[name], aval), aval.dtype))
    tree: T = unflatten(flatten_with_path(like)[1], found)
    return tree


_Piece = tuple[tuple[tuple[int, int], ...], np.ndarray[Any, Any]]


def _assembled(name: str, pieces: list[_Piece], aval: Any,
               index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
    """A part of an array, of the pieces that overlap it."""
    wanted = tuple([s.indices(n)[:2] for s, n in zip(index, aval.shape, strict=True)])
    if pieces[0][1].dtype != aval.dtype or any(
            len(bounds) != len(wanted) or any(b > n for (_, b), n in zip(
                bounds, aval.shape, strict=True)) for bounds, _ in pieces):
        raise TreeMismatchError(
            f"{name!r} was saved as {pieces[0][1].dtype} in parts such as {pieces[0][0]}, and "
            f"{aval} was asked for.", where=user_source())
    out = np.empty([b - a for a, b in wanted], aval.dtype)
    filled = 0
    for bounds, array in pieces:
        if bounds == wanted:
            return array
        common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(bounds, wanted, strict=True)]
        if all(a < b for a, b in common):
            out[tuple([slice(a - c, b - c) for (a, b), (c, _) in zip(
                common, wanted, strict=True)])] = array[tuple(
                    [slice(a - c, b - c) for (a, b), (c, _) in zip(common, bounds, strict=True)])]
            filled += math.prod([b - a for a, b in common])
    if filled != out.size:
        raise TreeMismatchError(f"parts of {name!r} are missing: {filled} of {out.size} elements "
                                f"of {wanted} are there.", where=user_source(),
                                why="its shape is another one, or files were lost.")
    return out


def _nested(arrays: Mapping[str, Array]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        *parents, last = name.split(".")
        node = tree
        for key in parents:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise ArgumentError(f"{name!r} is inside of another array's name.",
                                    where=user_source(), fix="load(path, like=tree)")
        node[last] = array
    return tree


def _restored(arrays: Mapping[str, Array], like: Any, path: Any) -> Any:
    wanted = names_of(like)
    missing, more = wanted.keys() - arrays.keys(), arrays.keys() - wanted.keys()
    if missing or more:
        parts = [f"{what} {', '.join(map(repr, sorted(names)[:5]))}{' ...' * (len(names) > 5)}"
                 for what, names in (("it lacks", missing), ("it also has", more)) if names]
        raise TreeMismatchError(f"{path} is not the tree that was asked for: {'; '.join(parts)}.",
                                where=user_source(), fix="load(path) for a dict of all there is")
    for name, leaf in wanted.items():
        got, aval = get_aval(arrays[name]), get_aval(leaf)
        if (got.shape, got.dtype) != (aval.shape, aval.dtype):
            raise TreeMismatchError(f"{name!r} in {path} is {got}, and {aval.strong()} was asked "
                                    "for.", where=user_source(), fix="x.astype(...) after loading")
    return unflatten(flatten_with_path(like)[1], [arrays[name] for name in wanted])


publish(globals(), __all__)
