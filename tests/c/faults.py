"""A layer between the cache and the file system that lets the k-th operation on a file fail."""

import contextlib
import os
from pathlib import Path
from unittest import mock

from functrans.lowering.store import cache as module

OPERATIONS = ("makedirs", "mkdir", "stat", "open", "fstat", "fchmod", "replace", "unlink", "utime",
              "scandir", "rmdir", "listdir", "posix_fallocate", "posix_spawn")


class Faults:
    """Counts the operations on files, and raises `errno` in that number `at`, or from there on."""

    def __init__(self, errno=None, at=None, forever=False, below=None):
        self.errno, self.at, self.forever, self.below = errno, at, forever, below
        self.done = []

    def _passes(self, name, arguments):
        place = arguments[0] if arguments else ""
        if self.below is not None and not (isinstance(place, (str, os.PathLike)) and str(
                os.fspath(place)).startswith(str(self.below))):
            return
        number = len(self.done)
        self.done.append(name)
        if self.errno is not None and (
                number == self.at or (self.forever and number >= self.at)):
            raise OSError(self.errno, os.strerror(self.errno))

    def _through(self, name, real):
        def call(*args, **kwargs):
            self._passes(name, args)
            return real(*args, **kwargs)
        return call

    def _opened(self, *args, **kwargs):
        self._passes("open file", args)
        file = open(*args, **kwargs)  # noqa: SIM115  the caller closes it
        if file.writable():
            return _Writing(file, self, args)
        return file

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for name in OPERATIONS:
                stack.enter_context(mock.patch.object(os, name, self._through(
                    name, getattr(os, name))))
            stack.enter_context(mock.patch.object(module, "open", self._opened, create=True))
            write = Path.write_text
            stack.enter_context(mock.patch.object(
                Path, "write_text", lambda path, *args, **kwargs: (
                    self._passes("write_text", [path]), write(path, *args, **kwargs))[1]))
            self._left = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._left.close()


class _Writing:
    """A file whose writes may fail."""

    def __init__(self, file, faults, args):
        self.file, self.faults, self.args = file, faults, args

    def write(self, data):
        self.faults._passes("write", self.args)
        return self.file.write(data)

    def __enter__(self):
        self.file.__enter__()
        return self

    def __exit__(self, *error):
        return self.file.__exit__(*error)

    def __getattr__(self, name):
        return getattr(self.file, name)
