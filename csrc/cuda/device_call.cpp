// One call of a CudaProgram: leaves to buffers, outputs and arena, the steps, errors.
#include "cuda/device_call.h"

#include "allocator.h"
#include "cuda/libraries.h"
#include "cuda/loops.h"
#include "cuda/nccl.h"
#include "cuda/transfer.h"
#include "inline_vector.h"

#include <algorithm>
#include <new>
#include <utility>

namespace functrans::cuda {
namespace {

PyArrayObject* ndarray(PyObject* np) { return reinterpret_cast<PyArrayObject*>(np); }

// Should a kernel not load, nothing is loaded, and the next call says the same.
void unload(CudaProgram& program, Device& device) {
  for (Module* module : program.modules) device.modules.give(module);
  program.modules.clear();
  for (Kernel& kernel : program.kernels) kernel.function = nullptr;
}

void load(CudaProgram& program, Device& device) {
  program.modules.reserve(program.kernels.size());
  for (Kernel& kernel : program.kernels) {
    try {
      program.modules.push_back(device.modules.take(kernel, device.ordinal));
      FT_CU(ModuleGetFunction(&kernel.function, program.modules.back()->handle,
                              kernel.name.c_str()));
      if (kernel.shared > (48u << 10)) {
        FT_CU(FuncSetAttribute(kernel.function, kFuncMaxDynamicShared,
                               static_cast<int>(kernel.shared)));
      }
      if (kernel.prefers_l1) FT_CU(FuncSetAttribute(kernel.function, kFuncPreferredCarveout, 0));
    } catch (Failure& failure) {
      failure.note = "kernel " + kernel.name + " of " + *program.label + ", " +
                     std::to_string(kernel.shared) + " bytes of shared memory";
      unload(program, device);
      throw;
    }
  }
}

// Graphs have the loops where the driver can; otherwise the host drives them.
void prepare_graphs(CudaProgram& program, Device& device) {
  const auto has_loop = [](const Step& step) { return step.kind == StepKind::until; };
  if (program.graphs && program.decide == nullptr && graphs_have_loops() &&
      std::any_of(program.steps.begin(), program.steps.end(), has_loop)) {
    try {
      program.modules.push_back(device.modules.take(decide_kernel(), device.ordinal));
      FT_CU(ModuleGetFunction(&program.decide, program.modules.back()->handle, "decide"));
    } catch (const Failure& failure) {
      if (failure.cause == Cause::fault) throw;
      program.decide = nullptr;
    }
  }
  program.find_segments(program.decide != nullptr);
}

// Modules and constants, when the program runs first. Without the GIL.
void prepare(CudaProgram& program, Device& device) {
  std::lock_guard<std::mutex> lock(program.mutex);
  if (program.loaded) return;
  const Current current(device);
  if (program.modules.empty()) load(program, device);
  prepare_graphs(program, device);
  for (std::size_t i = program.constant_buffers.size(); i < program.constants.size(); ++i) {
    PyArrayObject* np = ndarray(program.constants[i]);
    BufferRef buffer = new_buffer(device, static_cast<std::size_t>(PyArray_NBYTES(np)));
    if (buffer->bytes <= kDirectBytes) {
      upload_small(*buffer.get(), PyArray_DATA(np));
    } else {
      upload_large(*buffer.get(), PyArray_DATA(np));
      settle(*buffer.get());
    }
    program.constant_buffers.push_back(std::move(buffer));
  }
  program.loaded = true;
}

bool raise_misfit(std::size_t index, const ArraySpec& spec, PyArrayObject* np) {
  Ref shape(PyArray_IntTupleFromIntp(PyArray_NDIM(np), PyArray_DIMS(np)));
  Ref expected(PyArray_IntTupleFromIntp(spec.ndim(), spec.dims.data()));
  if (shape && expected) {
    PyErr_Format(PyExc_TypeError, "input %zu of the program must have shape %R, not %R", index,
                 expected.get(), shape.get());
  }
  return false;
}

}  // namespace

bool Call::gather_one(std::size_t i, PyObject* leaf) {
  const ArraySpec& spec = program.inputs[i];
  if (is_exact_array(leaf)) {
    ArrayObject* array = as_array(leaf);
    if (array->loop_type == kDonated) return raise_donated(array);
    PyArray_Descr* descr = PyArray_DESCR(array->np);
    if (!spec.fits(array->np)) return raise_misfit(i, spec, array->np);
    if (descr == spec.descr || PyArray_EquivTypes(descr, spec.descr)) {
      inputs.push_back(buffer_on(leaf, device));
      if (inputs.back().get() == nullptr) return false;
      settle(*inputs.back().get());
      return true;
    }
    if (!has_data(array)) return false;
    leaf = reinterpret_cast<PyObject*>(array->np);
  }
  Py_INCREF(spec.descr);
  Ref np(PyArray_FromAny(leaf, spec.descr, 0, 0,
                         NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_FORCECAST |
                             NPY_ARRAY_ENSUREARRAY,
                         nullptr));
  if (!np) return false;
  if (!spec.fits(ndarray(np.get()))) return raise_misfit(i, spec, ndarray(np.get()));
  inputs.push_back(upload(device, ndarray(np.get())));
  settle(*inputs.back().get());
  return true;
}

bool Call::gather(PyObject* const* leaves) {
  inputs.reserve(program.inputs.size());
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (!gather_one(i, leaves[i])) return false;
  }
  return true;
}

namespace {

std::size_t bytes_of(const ArraySpec& spec) {
  return static_cast<std::size_t>(
             PyArray_MultiplyList(spec.dims.data(), static_cast<int>(spec.dims.size()))) *
         static_cast<std::size_t>(PyDataType_ELSIZE(spec.descr));
}

}  // namespace

// Outputs that replace a donated input of which nobody else knows take its memory.
void Call::make_outputs(PyObject* const* leaves) {
  outputs.reserve(program.outputs.size());
  for (const ArraySpec& spec : program.outputs) {
    const std::size_t bytes = bytes_of(spec);
    if (spec.alias >= 0 && program.donated[spec.alias]) {
      DeviceBuffer* buffer = inputs[spec.alias].get();
      const bool given = is_exact_array(leaves[spec.alias]) &&
                         buffer_of(as_array(leaves[spec.alias])) == buffer;
      if (buffer->block != nullptr && buffer->bytes == bytes &&
          buffer->references.load(std::memory_order_acquire) == (given ? 2 : 1)) {
        outputs.push_back(BufferRef(retain(buffer)));
        continue;
      }
    }
    outputs.push_back(new_buffer(device, bytes));
  }
}

// Before anything runs: what is written to is no other array's, also where the program fails.
bool Call::take_inputs(PyObject* const* leaves) {
  for (std::size_t i = 0; program.any_alias && i < program.outputs.size(); ++i) {
    const npy_intp alias = program.outputs[i].alias;
    if (alias < 0 || outputs[i].get() != inputs[alias].get()) continue;
    if (!is_exact_array(leaves[alias])) continue;
    const Ref taken(reinterpret_cast<PyObject*>(take_data(as_array(leaves[alias]))));
    if (!taken) return false;
  }
  return true;
}

// Whether the steps ran as a graph; without the GIL.
bool Call::replay(Segment& segment) {
  const StepRange steps{program.steps.data() + segment.begin, segment.end - segment.begin};
  if (synchronous || !std::exchange(segment.ran, true)) return false;
  const NodeSource source{program.kernels.data(), bases.data(), program.decide, &device};
  lane.wait_for_all();  // a graph has no other collectives than its own
  try {
    if (!segment.graphs.run(steps, source, bases, device.compute)) return false;
  } catch (const Failure& failure) {
    if (!segment.loops || failure.cause == Cause::fault) throw;
    loops_failed = true;  // the host can drive them
    return false;
  }
  ++program.replays;
  return true;
}

// Launches, fills and copies; without the GIL.
void Call::run_steps(std::size_t begin, std::size_t end) {
  std::unique_lock<std::mutex> lock(program.mutex);
  // a step of a loop, which may call this program itself
  const RunHost on_host = [&](const Step& step) {
    lock.unlock();
    {
      const PyGILState_STATE gil = PyGILState_Ensure();
      const bool ok = run_host(step);
      PyGILState_Release(gil);
      if (!ok) throw HostFailed();
    }
    lock.lock();
  };
  auto segment = program.segments.begin();
  for (std::size_t i = begin; i < end; ++i) {
    while (segment != program.segments.end() && segment->begin < i) ++segment;
    if (segment != program.segments.end() && segment->begin == i && replay(*segment)) {
      i = segment->end - 1;
      continue;
    }
    Step& step = program.steps[i];
    try {
      if (step.kind == StepKind::library) {
        run_library(device, step, bases.data());
      } else if (step.kind == StepKind::rounds || step.kind == StepKind::until) {
        run_loop(device, step, program.kernels.data(), bases.data(), on_host);
      } else if (step.kind == StepKind::collective) {
        lane.start(step, bases.data());
        if (synchronous) lane.wait_for_all();
      } else if (step.kind == StepKind::wait) {
        lane.wait(step.count);
      } else {
        enqueue(step, program.kernels.data(), bases.data(), device.compute);
      }
      if (synchronous) check(driver.StreamSynchronize(device.compute), "StreamSynchronize");
    } catch (Failure& failure) {
      failure.device = device.ordinal;
      if (step.kind == StepKind::launch) {
        failure.note = "kernel " + program.kernels[step.kernel].name + " of " + *program.label;
      } else if (failure.cause == Cause::library) {
        failure.note += " in " + *program.label;
      }
      throw;
    }
    program.launches += step.kind == StepKind::launch;
  }
  if (end == program.steps.size()) lane.wait_for_all();
  if (std::exchange(loops_failed, false)) program.find_segments(false);
}

// Copies the inputs to the host, calls, and copies the results back; with the GIL.
bool Call::run_host(const Step& step) {
  const HostCall& host = program.hosts[step.host];
  const std::size_t count = host.inputs.size();
  std::vector<Ref> arrays;
  std::vector<PyObject*> arguments;
  std::vector<void*> buffers(count, nullptr);
  for (std::size_t i = 0; i < count + host.outputs.size(); ++i) {
    const ArraySpec& spec = i < count ? host.inputs[i] : host.outputs[i - count];
    Py_INCREF(spec.descr);
    arrays.emplace_back(reinterpret_cast<PyObject*>(
        new_ndarray(spec.descr, spec.ndim(), spec.dims.data(), i >= count)));
    if (!arrays.back()) return false;
    if (i >= count) {
      buffers.push_back(PyArray_DATA(ndarray(arrays.back().get())));
      continue;
    }
    arguments.push_back(arrays.back().get());
    const Unlocked unlocked;
    read_now(device, PyArray_DATA(ndarray(arguments.back())), step.places[i].in(bases.data()),
             bytes_of(spec));
  }
  if (!call_host_on(host, arguments.data(), buffers.data())) return false;
  const Unlocked unlocked;
  for (std::size_t i = 0; i < host.outputs.size(); ++i) {
    write_now(device, step.places[count + i].in(bases.data()), buffers[count + i],
              bytes_of(host.outputs[i]));
  }
  return true;
}

bool Call::run() {
  const Current current(device);
  for (std::size_t i = 0; i < program.steps.size();) {
    if (program.steps[i].kind == StepKind::host) {
      if (!run_host(program.steps[i])) return false;
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < program.steps.size() && program.steps[end].kind != StepKind::host) ++end;
    const Unlocked unlocked;
    run_steps(i, end);
    i = end;
  }
  return true;
}

// Whatever was given before a failure may be using the memory: it counts, too.
Call::~Call() {
  if (!began_) return;
  if (position_ == 0) {
    try {
      const Current current(device);
      lane.wait_for_all();
    } catch (const Failure&) {
      // the device is lost, and with it what would use the memory
    }
    position_ = device.timeline.advance();
  }
  device.log(program.label, position_);
  if (arena_ != nullptr) device.release(arena_);
}

bool Call::begin(PyObject* const* leaves) {
  device.run_deferred();
  if (!program.loaded) {
    const Unlocked unlocked;
    prepare(program, device);
  }
  const Current current(device);
  if (!gather(leaves)) return false;
  make_outputs(leaves);
  if (program.arena_bytes > 0) {
    arena_ = device.allocate(static_cast<std::size_t>(program.arena_bytes));
  }
  began_ = true;
  const CUdeviceptr arena = arena_ == nullptr ? 0 : arena_->pointer;
  bases.reserve(program.scratch_base() + 2);
  for (const BufferRef& one : inputs) bases.push_back(one->pointer);
  for (const BufferRef& one : outputs) bases.push_back(one->pointer);
  for (const BufferRef& one : program.constant_buffers) bases.push_back(one->pointer);
  bases.push_back(arena);
  bases.push_back(arena + static_cast<CUdeviceptr>(program.scratch_offset));
  bases.push_back(program.has_collectives ? serial_of_groups() : 0);
  for (std::size_t i = 0; program.any_alias && i < program.outputs.size(); ++i) {
    const npy_intp alias = program.outputs[i].alias;
    if (alias < 0 || outputs[i]->pointer == inputs[alias]->pointer) continue;
    if (outputs[i]->bytes != inputs[alias]->bytes) {
      PyErr_SetString(PyExc_SystemError,
                      "a program's output has another size than the input it replaces");
      return false;
    }
    if (outputs[i]->bytes == 0) continue;
    FT_CU(MemcpyDtoDAsync(outputs[i]->pointer, inputs[alias]->pointer, outputs[i]->bytes,
                          device.compute));
  }
  return take_inputs(leaves);
}

bool Call::finish(PyObject* const* leaves, const std::vector<bool>* weak, PyObject** results) {
  position_ = device.timeline.advance();
  for (const BufferRef& one : outputs) one->written = position_;
  for (std::size_t i = 0; program.any_donated && i < program.inputs.size(); ++i) {
    if (!program.donated[i] || !is_exact_array(leaves[i])) continue;
    ArrayObject* array = as_array(leaves[i]);
    if (array->loop_type == kDonated) continue;
    const Ref taken(reinterpret_cast<PyObject*>(take_data(array)));
    if (!taken) return false;
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const ArraySpec& spec = program.outputs[i];
    results[i] = new_device_array(std::move(outputs[i]), spec.descr, spec.ndim(),
                                  spec.dims.data(), weak != nullptr && (*weak)[i]);
    if (results[i] != nullptr) continue;
    while (i-- > 0) Py_CLEAR(results[i]);
    return false;
  }
  return true;
}

bool run_cuda_program(CudaProgram& program, PyObject* const* leaves, const std::vector<bool>* weak,
                      PyObject** results) {
  try {
    Call call(program, get_device(program.ordinal));
    return call.begin(leaves) && call.run() && call.finish(leaves, weak, results);
  } catch (const Failure& failure) {
    raise_failure(failure);
  } catch (const HostFailed&) {
    // as Python says
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return false;
}

}  // namespace functrans::cuda
