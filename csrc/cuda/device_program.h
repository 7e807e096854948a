// CudaProgram: kernels, fills, copies and host calls that run on a device without Python between.
#pragma once

#include "cuda/buffer.h"
#include "cuda/graph.h"
#include "cuda/modules.h"
#include "cuda/steps.h"
#include "program.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace functrans::cuda {

// Steps between others that no graph can have: from its second run on it is one launch.
struct Segment {
  Segment(std::size_t b, std::size_t e, bool l) : begin(b), end(e), loops(l) {}
  std::size_t begin, end;
  bool loops;  // among its steps
  bool ran = false;
  GraphCache graphs;
};

struct CudaProgram {
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  std::vector<ArraySpec> inputs;
  std::vector<ArraySpec> outputs;
  std::vector<PyObject*> constants;  // C-contiguous ndarrays, owned
  std::vector<HostCall> hosts;
  std::vector<bool> donated;  // one flag per input
  bool graphs = false;  // whether they are wanted, and possible
  bool any_donated = false;
  bool any_alias = false;
  bool has_collectives = false;
  bool only_enqueues = true;  // nothing waits for the device or for Python
  std::int64_t arena_bytes = 0;    // with the kernels' scratch, which lies behind
  std::int64_t scratch_offset = 0;
  int ordinal = 0;
  std::shared_ptr<const std::string> label;

  // Guards what follows and the values of the steps; taken without the GIL only.
  std::mutex mutex;
  std::atomic<bool> loaded{false};
  std::vector<Module*> modules;  // one for each kernel
  std::vector<BufferRef> constant_buffers;
  std::deque<Segment> segments;  // in order; none where graphs are not wanted
  CUfunction decide = nullptr;   // of graphs with loops
  std::uint64_t launches = 0;  // of kernels one by one
  std::uint64_t replays = 0;   // of graphs
  std::atomic<bool> ran{false};  // its collectives have found their peers

  // Where the pointers of each kind begin in the table of a call.
  std::size_t first_output() const { return inputs.size(); }
  std::size_t first_constant() const { return inputs.size() + outputs.size(); }
  std::size_t arena_base() const { return first_constant() + constants.size(); }
  std::size_t scratch_base() const { return arena_base() + 1; }

  // The segments, of which none is in use: with loops in them, or between them.
  void find_segments(bool loops);

  ~CudaProgram();
  CudaProgram() = default;
};

extern PyTypeObject* cuda_program_type;
inline bool is_cuda_program(PyObject* object) { return Py_TYPE(object) == cuda_program_type; }
CudaProgram& as_cuda_program(PyObject* object);

// Gives new references to Arrays on the program's device, with these weak types (null: strong).
// The caller keeps program and leaves alive. False with an exception set.
bool run_cuda_program(CudaProgram& program, PyObject* const* leaves, const std::vector<bool>* weak,
                      PyObject** results);

bool init_program(PyObject* module);

}  // namespace functrans::cuda
