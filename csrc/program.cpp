// The Python type Program: reading its description, opening the shared object.
#include "program.h"

#include "allocator.h"
#include "interrupts.h"
#include "library.h"
#include "program_reading.h"
#include "program_type.h"
#include "thread_costs.h"
#include "threads.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace functrans {

PyTypeObject* program_type = nullptr;

bool ArraySpec::symbolic() const {
  for (npy_intp dim : dims) {
    if (dim == kSymbolic) return true;
  }
  return false;
}

bool ArraySpec::fits(PyArrayObject* np) const {
  if (PyArray_NDIM(np) != ndim()) return false;
  for (int i = 0; i < ndim(); ++i) {
    if (dims[i] != PyArray_DIM(np, i) && dims[i] != kSymbolic) return false;
  }
  return true;
}

Program::~Program() {
  auto drop = [](std::vector<ArraySpec>& specs) {
    for (ArraySpec& spec : specs) Py_XDECREF(spec.descr);
  };
  drop(inputs);
  drop(outputs);
  for (PyObject* constant : constants) Py_DECREF(constant);
  for (HostCall& host : hosts) {
    Py_XDECREF(host.callable);
    drop(host.inputs);
    drop(host.outputs);
  }
  Py_XDECREF(watcher);
  for (void* handle : handles) dlclose(handle);
}

namespace {

// --- reading the description

// (dtype, shape) and, of a program's outputs, the alias. The spec is appended first, so that its
// owner frees what has been read when the rest fails.
bool read_spec(PyObject* object, std::vector<ArraySpec>& specs, bool with_alias) {
  specs.emplace_back();
  ArraySpec& spec = specs.back();
  PyObject *dtype, *shape, *alias = nullptr;
  Ref tuple(PySequence_Tuple(object));
  if (!tuple) return false;
  if (!PyArg_ParseTuple(tuple.get(), with_alias ? "OOO:spec" : "OO:spec", &dtype, &shape, &alias) ||
      PyArray_DescrConverter(dtype, &spec.descr) == 0) {
    return false;
  }
  if (PyDataType_REFCHK(spec.descr) || PyDataType_ELSIZE(spec.descr) == 0) {
    PyErr_Format(PyExc_TypeError, "a program has no arrays of dtype %S", spec.descr);
    return false;
  }
  if (with_alias && !read_int(alias, spec.alias)) return false;
  return each(shape, [&spec](PyObject* item) {
    npy_intp dim = kSymbolic;
    if (item != Py_None && (!read_int(item, dim) || dim < 0)) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a shape has a negative extent");
      return false;
    }
    spec.dims.push_back(dim);
    if (spec.dims.size() <= NPY_MAXDIMS) return true;
    PyErr_Format(PyExc_ValueError, "an array has at most %d axes", NPY_MAXDIMS);
    return false;
  });
}

bool read_specs(PyObject* sequence, std::vector<ArraySpec>& specs, bool with_alias = false) {
  return each(sequence, [&](PyObject* item) { return read_spec(item, specs, with_alias); });
}

bool read_host(PyObject* object, std::vector<HostCall>& hosts) {
  hosts.emplace_back();
  HostCall& host = hosts.back();
  PyObject *callable, *inputs, *outputs;
  int borrows = 0;
  Ref tuple(PySequence_Tuple(object));
  if (!tuple) return false;
  if (!PyArg_ParseTuple(tuple.get(), "OOO|p:host", &callable, &inputs, &outputs, &borrows)) {
    return false;
  }
  if (!PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "a host call needs a callable, not %.200s",
                 Py_TYPE(callable)->tp_name);
    return false;
  }
  host.callable = Py_NewRef(callable);
  host.borrows = borrows != 0;
  if (!read_specs(inputs, host.inputs) || !read_specs(outputs, host.outputs)) return false;
  for (const ArraySpec& spec : host.inputs) host.symbolic |= spec.symbolic();
  for (const ArraySpec& spec : host.outputs) host.symbolic |= spec.symbolic();
  return true;
}

bool read_size(PyObject* object, Program& program) {
  int input, axis;
  Ref tuple(PySequence_Tuple(object));
  if (!tuple || !PyArg_ParseTuple(tuple.get(), "ii:size", &input, &axis)) return false;
  if (input < 0 || static_cast<std::size_t>(input) >= program.inputs.size() || axis < 0 ||
      axis >= program.inputs[input].ndim()) {
    PyErr_Format(PyExc_ValueError, "a size is read at input %d, axis %d, which is not there", input,
                 axis);
    return false;
  }
  program.sizes.emplace_back(input, axis);
  return true;
}

bool read_library(PyObject* object, Program& program) {
  const char* name = PyUnicode_AsUTF8(object);
  if (name == nullptr) return false;
  program.library.push_back(find_library(name));
  if (program.library.back() != nullptr) return true;
  PyErr_Format(PyExc_LookupError, "functrans has no library function %R", object);
  return false;
}

bool check_outputs(Program& program) {
  std::vector<bool> replaced(program.inputs.size());
  for (const ArraySpec& spec : program.outputs) {
    program.out_dims += spec.dims.size();
    if (spec.symbolic() && program.shapes == nullptr) {
      PyErr_SetString(PyExc_ValueError, "outputs of symbolic sizes need ft_shapes");
      return false;
    }
    if (spec.alias < 0) continue;
    program.any_alias = true;
    if (static_cast<std::size_t>(spec.alias) >= replaced.size() || replaced[spec.alias]) {
      PyErr_Format(PyExc_ValueError, "an output replaces input %zd, which is %s",
                   static_cast<Py_ssize_t>(spec.alias),
                   static_cast<std::size_t>(spec.alias) >= replaced.size() ? "not there"
                                                                           : "replaced already");
      return false;
    }
    replaced[spec.alias] = true;
  }
  return true;
}

// --- the shared object

// Whether the file is all there: the loader maps what a shortened file's headers promise and dies
// by SIGBUS when it touches it. The table of sections stands at the end.
bool is_whole(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;  // dlopen says it better
  Elf64_Ehdr header{};
  struct stat status {};
  bool whole = false;
  if (fstat(file, &status) == 0 &&
      read(file, &header, sizeof header) == static_cast<ssize_t>(sizeof header)) {
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const std::uint64_t table = std::uint64_t{header.e_shentsize} * header.e_shnum;
    whole = std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||  // again for dlopen
            header.e_ident[EI_CLASS] != ELFCLASS64 ||
            (header.e_shoff <= size && table <= size - header.e_shoff);
  }
  close(file);
  return whole;
}

// Opens a shared object and gives its entry to the program, in the place of what that had.
bool open_object(PyObject* path, Program& program) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path, &bytes) == 0) return false;
  Ref owned(bytes);
  const char* name = PyBytes_AS_STRING(bytes);
  bool whole = false;
  void* handle = nullptr;
  const char* error = nullptr;
  PyThreadState* thread = PyEval_SaveThread();
  whole = is_whole(name);
  if (whole) {
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) error = dlerror();
  }
  restore_thread(thread);
  if (!whole) {
    PyErr_Format(PyExc_OSError, "cannot load %S: the file is cut short", path);
    return false;
  }
  if (handle == nullptr) {
    PyErr_Format(PyExc_OSError, "cannot load %S: %s", path, error == nullptr ? "unknown" : error);
    return false;
  }
  program.handles.push_back(handle);  // a call may still run what was there before
  const auto* abi = static_cast<const std::int64_t*>(dlsym(handle, "ft_abi"));
  if (abi == nullptr || *abi != kProgramAbi) {
    PyErr_Format(PyExc_OSError, "cannot load %S: it is made for interface %lld, not %lld", path,
                 abi == nullptr ? 0LL : static_cast<long long>(*abi),
                 static_cast<long long>(kProgramAbi));
    return false;
  }
  const auto entry = reinterpret_cast<ProgramEntry>(dlsym(handle, "ft_program"));
  if (program.shapes == nullptr) {
    program.shapes = reinterpret_cast<ShapesEntry>(dlsym(handle, "ft_shapes"));
  }
  if (entry != nullptr) {
    program.entry.store(entry, std::memory_order_release);
    return true;
  }
  PyErr_Format(PyExc_OSError, "cannot load %S: it has no ft_program", path);
  return false;
}

void* allocate_bytes(std::int64_t bytes) {
  return bytes < 0 ? nullptr : allocate(static_cast<std::size_t>(bytes));
}

// The parallel loop of a program: abandoned where the call is to end, and whether it was.
int parallel_in_call(void* context, RangeFn body, void* arg, std::int64_t n,
                     std::int64_t grain) noexcept {
  const std::int64_t grains = grain > 0 ? (n - 1) / grain + 1 : n;
  if (ProgramRun* run = program_run()) run->note_work(n);
  return parallel_for_until(body, arg, n, grain, call_stops, context, grains * kGrainTime) ? 0 : 1;
}

PyObject* program_new_checked(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"path", "inputs", "constants", "outputs", "arena_bytes", "sizes",
                                   "libs", "hosts",  "heavy",     "donated", nullptr};
  Ref none(PyTuple_New(0));
  if (!none) return nullptr;
  PyObject *path, *inputs, *constants, *outputs, *sizes, *libs, *hosts, *donated = none.get();
  long long arena_bytes;
  int heavy;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOLOOOp|O:Program",
                                   const_cast<char**>(keywords), &path, &inputs, &constants,
                                   &outputs, &arena_bytes, &sizes, &libs, &hosts, &heavy,
                                   &donated)) {
    return nullptr;
  }
  Ref object(type->tp_alloc(type, 0));
  if (!object) return nullptr;
  auto* self = reinterpret_cast<ProgramObject*>(object.get());
  self->program = new Program();
  Program& program = *self->program;
  program.self = object.get();
  program.arena_bytes = arena_bytes;
  program.heavy = heavy != 0;
  if (arena_bytes < 0) {
    PyErr_SetString(PyExc_ValueError, "arena_bytes is negative");
    return nullptr;
  }
  const auto with = [&program](auto read) {
    return [&program, read](PyObject* item) { return read(item, program); };
  };
  if (!open_object(path, program) || !read_specs(inputs, program.inputs)) return nullptr;
  program.donated.resize(program.inputs.size());
  if (!each(constants, with(read_constant<Program>)) || !read_specs(outputs, program.outputs, true) ||
      !check_outputs(program) || !each(sizes, with(read_size)) ||
      !each(libs, with(read_library)) ||
      !each(hosts, [&program](PyObject* item) { return read_host(item, program.hosts); }) ||
      !each(donated, with(read_donated<Program>))) {
    return nullptr;
  }
  program.api = {kProgramAbi,    parallel_in_call, call_host,
                 allocate_bytes, deallocate,       program.library.data(),
                 call_stops};
  return object.release();
}

// --- the type

PyObject* program_call(PyObject* self, PyObject* const* args, std::size_t nargsf,
                       PyObject* kwnames) {
  const Program& program = as_program(self);
  Ref held = Ref::borrow(self);
  Ref leaves(read_leaves(args, nargsf, kwnames, program.inputs.size()));
  if (!leaves) return nullptr;
  try {
    std::vector<PyObject*> outputs(program.outputs.size());
    if (!run_program(program, PySequence_Fast_ITEMS(leaves.get()), outputs.data())) return nullptr;
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (list == nullptr) {
        Py_DECREF(outputs[i]);
      } else {
        PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), outputs[i]);
      }
    }
    return list;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// watch(callable, nanoseconds): the callable is called with the program, once, at the end of the call
// by which it has run for so long.
PyObject* program_watch(PyObject* self, PyObject* args) {
  PyObject* callable;
  long long nanoseconds;
  if (!PyArg_ParseTuple(args, "OL:watch", &callable, &nanoseconds)) return nullptr;
  Program& program = *reinterpret_cast<ProgramObject*>(self)->program;
  Py_XSETREF(program.watcher, Py_NewRef(callable));
  program.unwatched.store(std::max(nanoseconds, 1LL));
  Py_RETURN_NONE;
}

// replace(path): calls that begin from now on run what is in another shared object, which was made
// from the same text.
PyObject* program_replace(PyObject* self, PyObject* path) {
  try {
    if (!open_object(path, *reinterpret_cast<ProgramObject*>(self)->program)) return nullptr;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  Py_RETURN_NONE;
}

PyMethodDef program_methods[] = {{"watch", program_watch, METH_VARARGS, nullptr},
                                 {"replace", program_replace, METH_O, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool read_array_specs(PyObject* sequence, std::vector<ArraySpec>& specs, bool with_alias) {
  return read_specs(sequence, specs, with_alias);
}

bool read_host_call(PyObject* object, std::vector<HostCall>& hosts) {
  return read_host(object, hosts);
}

bool init_program(PyObject* module) {
  program_type = ProgramType<ProgramObject>::add<program_new_checked, program_call>(
      module, "functrans._runtime.Program", {Py_tp_methods, program_methods});
  return program_type != nullptr;
}

}  // namespace functrans
