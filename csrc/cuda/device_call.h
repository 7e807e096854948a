// One call of a CudaProgram: leaves to buffers, outputs and arena, the steps, results.
#pragma once

#include "cuda/communication.h"
#include "cuda/device_program.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace functrans::cuda {

// A step of the host failed, and Python's exception is set.
struct HostFailed {};

// All of it throws Failure, HostFailed or std::bad_alloc, or is false with an exception set. The
// caller keeps the program and the leaves alive.
class Call {
 public:
  Call(CudaProgram& p, Device& d) : program(p), device(d), lane(d) {}
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Everything that has to be there before the first step; with the GIL.
  bool begin(PyObject* const* leaves);
  // All steps; with the GIL, which is released meanwhile.
  bool run();
  // Steps without those of the host; the context is current, and the GIL is released.
  void run_steps(std::size_t begin, std::size_t end);
  // New references to the results; with the GIL.
  bool finish(PyObject* const* leaves, const std::vector<bool>* weak, PyObject** results);

  CudaProgram& program;
  Device& device;

 private:
  bool gather(PyObject* const* leaves);
  bool gather_one(std::size_t i, PyObject* leaf);
  void make_outputs(PyObject* const* leaves);
  bool take_inputs(PyObject* const* leaves);
  bool replay(Segment& segment);
  bool run_host(const Step& step);

  CommunicationLane lane;
  bool loops_failed = false;  // in a graph
  bool began_ = false;
  std::uint64_t position_ = 0;  // on the timeline, behind all of it
  Block* arena_ = nullptr;
  std::vector<BufferRef> inputs;
  std::vector<BufferRef> outputs;
  std::vector<CUdeviceptr> bases;
};

}  // namespace functrans::cuda
