// Program: a generated shared object with what it needs to run, called without Python in between.
#pragma once

#include "common.h"
#include "threads.h"

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include <pthread.h>

namespace functrans {

// What generated code sees; the version of the interface is fixed by `ft_abi` in the shared object.
// `parallel` returns, and `stops` tells, whether the call is to end early: with status 1.
struct ProgramApi {
  std::int64_t version;
  int (*parallel)(void* context, void (*body)(void*, std::int64_t, std::int64_t), void* arg,
                  std::int64_t n, std::int64_t grain);
  int (*host)(void* context, std::int64_t id, void* const* buffers, const std::int64_t* dims);
  void* (*allocate)(std::int64_t bytes);
  void (*release)(void* data);
  void* const* library;
  int (*stops)(void* context);
};
constexpr std::int64_t kProgramAbi = 2;

using ProgramEntry = int (*)(const ProgramApi* api, void* context, char* const* buffers,
                             char* arena, const std::int64_t* sizes);
using ShapesEntry = void (*)(const std::int64_t* sizes, std::int64_t* out_dims,
                             std::int64_t* arena_bytes);

constexpr npy_intp kSymbolic = -1;

struct ArraySpec {
  PyArray_Descr* descr = nullptr;  // owned by the program
  std::vector<npy_intp> dims;      // kSymbolic where only the call knows
  npy_intp alias = -1;             // of an output: the input whose memory it takes

  int ndim() const { return static_cast<int>(dims.size()); }
  bool symbolic() const;
  bool fits(PyArrayObject* np) const;  // rank and known extents
};

// A Python callable that the program calls.
struct HostCall {
  PyObject* callable = nullptr;  // owned by the program
  std::vector<ArraySpec> inputs;
  std::vector<ArraySpec> outputs;
  bool symbolic = false;  // some extent is
  bool borrows = false;   // it keeps none of its arguments, so they need no copies
};

struct Program {
  std::vector<void*> handles;  // of its shared object, and of one that took its place
  std::atomic<ProgramEntry> entry{nullptr};
  ShapesEntry shapes = nullptr;
  ProgramApi api{};
  std::vector<ArraySpec> inputs;
  std::vector<ArraySpec> outputs;
  std::vector<PyObject*> constants;  // C-contiguous ndarrays, owned
  std::vector<bool> donated;         // one flag per input
  std::vector<std::pair<int, int>> sizes;  // (input, axis)
  std::vector<void*> library;
  std::vector<HostCall> hosts;
  std::int64_t arena_bytes = 0;
  std::size_t out_dims = 0;  // of all outputs
  bool any_donated = false;
  bool any_alias = false;
  bool heavy = false;
  // What is called with the program's object, once, when it has run for `unwatched` nanoseconds more.
  mutable PyObject* watcher = nullptr;  // owned, holds no program; null where nobody watches
  mutable std::atomic<std::int64_t> unwatched{0};
  PyObject* self = nullptr;  // the object that owns this
  mutable ProgramThreads threads;

  ~Program();
};

struct ProgramObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Program* program;
};

extern PyTypeObject* program_type;
inline bool is_program(PyObject* object) { return Py_TYPE(object) == program_type; }
inline const Program& as_program(PyObject* object) {
  return *reinterpret_cast<ProgramObject*>(object)->program;
}

// Runs on as many leaves as the program has inputs; gives new references to writeable ndarrays.
// The caller keeps the program and the leaves alive. False with an exception set.
bool run_program(const Program& program, PyObject* const* leaves, PyObject** outputs);

// What a running call lends to host calls.
struct CallContext {
  const Program* program;
  PyThreadState* thread = nullptr;  // saved while the GIL is released
  PyObject* kept = nullptr;         // keeps memory of the call for who kept borrowed arguments
  pthread_t owner = pthread_self();
  std::atomic<bool> stopped{false};         // the handler of a signal raised: see interrupts.h
  std::atomic<std::int64_t> next_look{0};   // when to look for signals again; 0 at first
};
PyObject* make_kept() noexcept;  // what `kept` starts as; null without memory
int call_host(void* context, std::int64_t id, void* const* buffers, const std::int64_t* dims);

// Calls on arrays of the host's specs and stores the results at buffers[inputs...]; with the GIL.
bool call_host_on(const HostCall& host, PyObject* const* arguments, void* const* buffers);

// Append what Python says: (dtype, shape[, alias]) each, (callable, inputs, outputs[, borrows]).
bool read_array_specs(PyObject* sequence, std::vector<ArraySpec>& specs, bool with_alias);
bool read_host_call(PyObject* object, std::vector<HostCall>& hosts);

bool init_program(PyObject* module);

}  // namespace functrans
