// The Python type CudaProgram: reading its description.
#include "cuda/device_program.h"

#include "cuda/libraries.h"
#include "program_reading.h"
#include "program_type.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

namespace functrans::cuda {

PyTypeObject* cuda_program_type = nullptr;

namespace {

constexpr std::int64_t kAlignment = 256;

struct CudaProgramObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  CudaProgram* program;
};

bool wrong(const char* what) {
  if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "CudaProgram: %s", what);
  return false;
}

// (name, image, shared, num_warps, arg_kinds, scratch_bytes, whether it waits itself,
//  whether it prefers the first-level cache to shared memory)
bool read_kernel(PyObject* object, CudaProgram& program) {
  const char *name, *kinds;
  PyObject* image;
  int shared, warps, waits = 0, prefers_l1 = 0;
  long long scratch;
  Ref tuple(PySequence_Tuple(object));
  if (!tuple || !PyArg_ParseTuple(tuple.get(), "sOiisL|pp:kernel", &name, &image, &shared, &warps,
                                  &kinds, &scratch, &waits, &prefers_l1)) {
    return false;
  }
  if (shared < 0 || warps < 1 || warps > 32 || scratch < 0) return wrong("a kernel's numbers");
  if (std::strspn(kinds, "pilfd") != std::strlen(kinds)) {
    return wrong("the kinds of arguments are letters out of 'pilfd'");
  }
  Kernel kernel;
  kernel.name = name;
  kernel.kinds = kinds;
  kernel.shared = static_cast<unsigned>(shared);
  kernel.threads = static_cast<unsigned>(warps) * 32;
  kernel.scratch = scratch;
  kernel.waits = waits != 0;
  kernel.prefers_l1 = prefers_l1 != 0;
  const char* text = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_Check(image)) {
    text = PyBytes_AS_STRING(image);
    size = PyBytes_GET_SIZE(image);
  } else if (PyUnicode_Check(image)) {
    text = PyUnicode_AsUTF8AndSize(image, &size);
  }
  if (text == nullptr) return wrong("a kernel's image is bytes, or text of PTX");
  kernel.image.assign(text, static_cast<std::size_t>(size));
  program.kernels.push_back(std::move(kernel));
  return true;
}

// ("input" | "output" | "constant" | "arena", index, offset), and the bytes of a round of a loop
bool read_place(PyObject* object, const CudaProgram& program, Place& place) {
  const char* kind;
  Py_ssize_t index;
  long long offset;
  Ref tuple(PySequence_Tuple(object));
  long long stride = 0;
  if (!tuple || !PyArg_ParseTuple(tuple.get(), "snL|L:pointer", &kind, &index, &offset, &stride)) {
    return false;
  }
  const auto at = static_cast<std::size_t>(index);
  place.stride = stride;
  place.offset = offset;
  std::size_t count = 0;
  if (std::strcmp(kind, "input") == 0) {
    place.base = at;
    count = program.inputs.size();
  } else if (std::strcmp(kind, "output") == 0) {
    place.base = program.first_output() + at;
    count = program.outputs.size();
  } else if (std::strcmp(kind, "constant") == 0) {
    place.base = program.first_constant() + at;
    count = program.constants.size();
  } else if (std::strcmp(kind, "arena") == 0) {
    place.base = program.arena_base();
    count = 1;
  }
  return (index >= 0 && at < count && offset >= 0) || wrong("a pointer to what is not there");
}

bool read_argument(PyObject* object, const CudaProgram& program, char kind, Step& step) {
  std::uint64_t value = 0;
  if (kind == 'p') {
    PointerArgument argument{step.values.size(), {}};
    if (!read_place(object, program, argument.place)) return false;
    step.pointers.push_back(argument);
  } else if (kind == 'i') {
    const long number = PyLong_AsLong(object);
    if (number != static_cast<std::int32_t>(number)) return wrong("an int32 out of range");
    const auto narrow = static_cast<std::int32_t>(number);
    std::memcpy(&value, &narrow, sizeof narrow);
  } else if (kind == 'l') {
    const long long number = PyLong_AsLongLong(object);
    std::memcpy(&value, &number, sizeof number);
  } else {
    const double number = PyFloat_AsDouble(object);
    const auto narrow = static_cast<float>(number);
    if (kind == 'f') {
      std::memcpy(&value, &narrow, sizeof narrow);
    } else {
      std::memcpy(&value, &number, sizeof number);
    }
  }
  step.values.push_back(value);
  return !PyErr_Occurred();
}

// (kernel, (x, y, z), arguments)
bool read_launch(PyObject* rest, CudaProgram& program, Step& step) {
  Py_ssize_t kernel;
  PyObject* arguments;
  if (!PyArg_ParseTuple(rest, "n(III)O:launch", &kernel, &step.grid[0], &step.grid[1],
                        &step.grid[2], &arguments)) {
    return false;
  }
  if (kernel < 0 || static_cast<std::size_t>(kernel) >= program.kernels.size()) {
    return wrong("a launch of a kernel that is not there");
  }
  step.kernel = static_cast<std::size_t>(kernel);
  const Kernel& launched = program.kernels[step.kernel];
  for (unsigned extent : step.grid) {
    if (extent == 0) return wrong("a launch over an empty grid");
  }
  std::size_t at = 0;
  if (!each(arguments, [&](PyObject* item) {
        if (at >= launched.kinds.size()) return wrong("a launch with too many arguments");
        return read_argument(item, program, launched.kinds[at++], step);
      })) {
    return false;
  }
  if (at != launched.kinds.size()) return wrong("a launch with too few arguments");
  // Triton's kernels end with two pointers: scratch memory and that of its profiler.
  if (launched.scratch > 0) {
    step.pointers.push_back({step.values.size(), {program.scratch_base(), 0}});
    const std::int64_t bytes =
        launched.scratch * step.grid[0] * static_cast<std::int64_t>(step.grid[1]) * step.grid[2];
    program.arena_bytes = std::max(program.arena_bytes, program.scratch_offset + bytes);
  }
  step.values.insert(step.values.end(), 2, 0);
  return true;
}

// (function, [(pointer, dtype, dims)], [(pointer, dtype, dims)])
bool read_host_step(PyObject* rest, CudaProgram& program, Step& step) {
  PyObject *function, *inputs, *outputs;
  if (!PyArg_ParseTuple(rest, "OOO:host", &function, &inputs, &outputs)) return false;
  Ref specs[2] = {Ref(PyList_New(0)), Ref(PyList_New(0))};
  for (int k = 0; k < 2; ++k) {
    const bool ok = specs[k] && each(k == 0 ? inputs : outputs, [&](PyObject* item) {
      PyObject *pointer, *dtype, *dims;
      Ref tuple(PySequence_Tuple(item));
      if (!tuple || !PyArg_ParseTuple(tuple.get(), "OOO:operand", &pointer, &dtype, &dims)) {
        return false;
      }
      step.places.emplace_back();
      Ref spec(PyTuple_Pack(2, dtype, dims));
      return spec && read_place(pointer, program, step.places.back()) &&
             PyList_Append(specs[k].get(), spec.get()) == 0;
    });
    if (!ok) return false;
  }
  Ref host(PyTuple_Pack(3, function, specs[0].get(), specs[1].get()));
  if (!host || !read_host_call(host.get(), program.hosts)) return false;
  if (program.hosts.back().symbolic) return wrong("a host step of symbolic sizes");
  step.host = program.hosts.size() - 1;
  return true;
}

// (function, numbers, pointers)
bool read_library_step(PyObject* rest, CudaProgram& program, Step& step) {
  const char* name;
  PyObject *numbers, *pointers;
  if (!PyArg_ParseTuple(rest, "sOO:library", &name, &numbers, &pointers)) return false;
  step.function = find_library_function(name);
  program.has_collectives = program.has_collectives || std::strcmp(name, "collective") == 0;
  if (step.function == nullptr) return wrong("a function that no library has");
  const bool ok = each(numbers, [&](PyObject* item) {
                    step.numbers.push_back(PyLong_AsLongLong(item));
                    return !PyErr_Occurred();
                  }) &&
                  each(pointers, [&](PyObject* item) {
                    step.places.emplace_back();
                    return read_place(item, program, step.places.back());
                  });
  if (!ok) return false;
  return (step.numbers.size() >= step.function->numbers &&
          step.places.size() == step.function->pointers) ||
         wrong("a library function with other arguments than it takes");
}

// (number, [(numbers, source, target)])
bool read_collectives(PyObject* rest, CudaProgram& program, Step& step) {
  PyObject* parts;
  long long number;
  if (!PyArg_ParseTuple(rest, "LO:collective", &number, &parts)) return false;
  step.count = number;
  program.has_collectives = true;
  return each(parts, [&](PyObject* part) {
    PyObject *numbers, *source, *target;
    Ref tuple(PySequence_Tuple(part));
    if (!tuple || !PyArg_ParseTuple(tuple.get(), "OOO:part", &numbers, &source, &target)) {
      return false;
    }
    std::vector<std::int64_t> read;
    Place from, to;
    if (!each(numbers, [&](PyObject* item) {
          read.push_back(PyLong_AsLongLong(item));
          return !PyErr_Occurred();
        }) || !read_place(source, program, from) || !read_place(target, program, to)) {
      return false;
    }
    if (read.size() < kCollectiveNumbers) return wrong("a collective with too few numbers");
    step.collectives.push_back({CollectiveNumbers(read), from, to});
    return true;
  });
}

bool read_step(PyObject* object, CudaProgram& program, std::vector<Step>& steps);

bool is_simple(const Step& step) {
  return step.kind == StepKind::launch || step.kind == StepKind::fill ||
         step.kind == StepKind::copy || step.kind == StepKind::library;
}

// Of rounds launches, fills, copies and library calls, and of what begins before it is asked for.
bool read_part(PyObject* object, CudaProgram& program, Step& loop) {
  std::vector<Step> steps;
  if (!each(object, [&](PyObject* item) { return read_step(item, program, steps); })) return false;
  const bool any = loop.kind == StepKind::until && !loop.ahead;
  if (!any && !std::all_of(steps.begin(), steps.end(), is_simple)) {
    return wrong("a step of rounds is a launch, fill, copy or library call");
  }
  loop.parts.push_back(std::move(steps));
  return true;
}

// (count, steps)
bool read_rounds(PyObject* rest, CudaProgram& program, Step& step) {
  PyObject* steps;
  long long count;
  if (!PyArg_ParseTuple(rest, "LO:rounds", &count, &steps)) return false;
  step.count = count;
  return read_part(steps, program, step);
}

// (ahead, [(flag, steps that set it, steps of an iteration, steps of the end)] of two sides)
bool read_until(PyObject* rest, CudaProgram& program, Step& step) {
  PyObject* sides;
  int ahead;
  if (!PyArg_ParseTuple(rest, "pO:until", &ahead, &sides)) return false;
  step.ahead = ahead != 0;
  const bool ok = each(sides, [&](PyObject* side) {
    PyObject *flag, *parts[3];
    Ref tuple(PySequence_Tuple(side));
    step.places.emplace_back();
    return tuple && PyArg_ParseTuple(tuple.get(), "OOOO:side", &flag, parts, parts + 1, parts + 2) &&
           read_place(flag, program, step.places.back()) && read_part(parts[0], program, step) &&
           read_part(parts[1], program, step) && read_part(parts[2], program, step);
  });
  return ok && (step.places.size() == 2 || wrong("a loop has two sides"));
}

bool read_step(PyObject* object, CudaProgram& program, std::vector<Step>& steps) {
  Ref tuple(PySequence_Tuple(object));
  if (!tuple) return false;
  if (PyTuple_GET_SIZE(tuple.get()) == 0) return wrong("an empty step");
  const char* kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple.get(), 0));
  Ref rest(PyTuple_GetSlice(tuple.get(), 1, PyTuple_GET_SIZE(tuple.get())));
  if (kind == nullptr || !rest) return false;
  Step step;
  if (std::strcmp(kind, "launch") == 0) {
    if (!read_launch(rest.get(), program, step)) return false;
  } else if (std::strcmp(kind, "fill") == 0) {
    PyObject* target;
    step.kind = StepKind::fill;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(rest.get(), "Onb:fill", &target, &bytes, &step.value) ||
        !read_place(target, program, step.target)) {
      return false;
    }
    if (bytes < 0) return wrong("a fill of negative size");
    step.bytes = static_cast<std::size_t>(bytes);
  } else if (std::strcmp(kind, "copy") == 0) {
    PyObject *target, *source;
    step.kind = StepKind::copy;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(rest.get(), "OOn:copy", &target, &source, &bytes) ||
        !read_place(target, program, step.target) || !read_place(source, program, step.source)) {
      return false;
    }
    if (bytes < 0) return wrong("a copy of negative size");
    step.bytes = static_cast<std::size_t>(bytes);
  } else if (std::strcmp(kind, "host") == 0) {
    step.kind = StepKind::host;
    program.only_enqueues = false;
    if (!read_host_step(rest.get(), program, step)) return false;
  } else if (std::strcmp(kind, "library") == 0) {
    step.kind = StepKind::library;
    if (!read_library_step(rest.get(), program, step)) return false;
  } else if (std::strcmp(kind, "rounds") == 0) {
    step.kind = StepKind::rounds;
    if (!read_rounds(rest.get(), program, step)) return false;
  } else if (std::strcmp(kind, "until") == 0) {
    step.kind = StepKind::until;
    program.only_enqueues = false;
    if (!read_until(rest.get(), program, step)) return false;
  } else if (std::strcmp(kind, "collective") == 0) {
    step.kind = StepKind::collective;
    if (!read_collectives(rest.get(), program, step)) return false;
  } else if (std::strcmp(kind, "wait") == 0) {
    step.kind = StepKind::wait;
    long long number;
    if (!PyArg_ParseTuple(rest.get(), "L:wait", &number)) return false;
    step.count = number;
  } else {
    return wrong("a step is a launch, fill, copy, host call, library call, collective, wait or loop");
  }
  const bool empty = (step.kind == StepKind::fill || step.kind == StepKind::copy) && !step.bytes;
  if (!empty) steps.push_back(std::move(step));
  return true;
}

// Outputs are (dtype, dims) or (dtype, dims, alias).
bool read_outputs(PyObject* sequence, CudaProgram& program) {
  std::vector<bool> replaced(program.inputs.size());
  return each(sequence, [&](PyObject* item) {
    Ref tuple(PySequence_Tuple(item));
    if (!tuple) return false;
    const bool with_alias = PyTuple_GET_SIZE(tuple.get()) == 3;
    Ref one(PyTuple_Pack(1, tuple.get()));
    if (!one || !read_array_specs(one.get(), program.outputs, with_alias)) return false;
    const ArraySpec& spec = program.outputs.back();
    if (spec.symbolic()) return wrong("an output of symbolic sizes");
    if (spec.alias < 0) return true;
    program.any_alias = true;
    const auto alias = static_cast<std::size_t>(spec.alias);
    if (alias >= replaced.size() || replaced[alias]) return wrong("an output's alias");
    replaced[alias] = true;
    return true;
  });
}

void point_to_values(std::vector<Step>& steps) {
  for (Step& step : steps) {
    for (std::uint64_t& value : step.values) step.parameters.push_back(&value);
    for (std::vector<Step>& part : step.parts) point_to_values(part);
  }
}

PyObject* new_checked(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"kernels",     "steps",  "inputs",  "outputs", "constants",
                                   "arena_bytes", "device", "donated", "name",    "graphs",
                                   nullptr};
  Ref none(PyTuple_New(0));
  if (!none) return nullptr;
  PyObject *kernels, *steps, *inputs, *outputs, *constants, *donated = none.get();
  long long arena_bytes;
  int device = 0;
  const char* name = "a program";
  int graphs = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOL|iOsp:CudaProgram",
                                   const_cast<char**>(keywords), &kernels, &steps, &inputs,
                                   &outputs, &constants, &arena_bytes, &device, &donated, &name,
                                   &graphs)) {
    return nullptr;
  }
  Ref object(type->tp_alloc(type, 0));
  if (!object) return nullptr;
  auto* self = reinterpret_cast<CudaProgramObject*>(object.get());
  self->program = new CudaProgram();
  CudaProgram& program = *self->program;
  if (arena_bytes < 0) {
    wrong("arena_bytes is negative");
    return nullptr;
  }
  program.scratch_offset = (arena_bytes + kAlignment - 1) / kAlignment * kAlignment;
  program.arena_bytes = arena_bytes;
  program.ordinal = device;
  program.label = std::make_shared<const std::string>(name);
  const auto with = [&program](auto read) {
    return [&program, read](PyObject* item) { return read(item, program); };
  };
  if (!each(kernels, with(read_kernel)) || !read_array_specs(inputs, program.inputs, false)) {
    return nullptr;
  }
  for (const ArraySpec& spec : program.inputs) {
    if (spec.symbolic()) {
      wrong("an input of symbolic sizes");
      return nullptr;
    }
  }
  program.donated.resize(program.inputs.size());
  if (!read_outputs(outputs, program) || !each(constants, with(read_constant<CudaProgram>)) ||
      !each(steps, [&](PyObject* item) { return read_step(item, program, program.steps); }) ||
      !each(donated, with(read_donated<CudaProgram>))) {
    return nullptr;
  }
  point_to_values(program.steps);  // they lie where they stay
  program.graphs = graphs != 0 && program.hosts.empty();
  return object.release();
}

PyObject* program_call(PyObject* self, PyObject* const* args, std::size_t nargsf,
                       PyObject* kwnames) {
  CudaProgram& program = as_cuda_program(self);
  Ref held = Ref::borrow(self);
  Ref leaves(read_leaves(args, nargsf, kwnames, program.inputs.size()));
  if (!leaves) return nullptr;
  Ref list(PyList_New(static_cast<Py_ssize_t>(program.outputs.size())));
  if (!list) return nullptr;
  PyObject** results = PySequence_Fast_ITEMS(list.get());
  if (!run_cuda_program(program, PySequence_Fast_ITEMS(leaves.get()), nullptr, results)) {
    return nullptr;
  }
  return list.release();
}

// Those of each loop, and then of the loops in its parts.
void collect_turns(const std::vector<Step>& steps, std::vector<std::int64_t>& turns) {
  for (const Step& step : steps) {
    if (step.kind == StepKind::until) turns.push_back(step.turns);
    for (const std::vector<Step>& part : step.parts) collect_turns(part, turns);
  }
}

PyObject* program_stats(PyObject* object, void*) {
  CudaProgram& program = *reinterpret_cast<CudaProgramObject*>(object)->program;
  std::vector<std::int64_t> turns;
  std::uint64_t launches, replays, built = 0, patched = 0;
  {
    const Unlocked unlocked;
    std::lock_guard<std::mutex> lock(program.mutex);
    launches = program.launches;
    collect_turns(program.steps, turns);
    replays = program.replays;
    for (const Segment& segment : program.segments) {
      built += segment.graphs.built();
      patched += segment.graphs.patched();
    }
  }
  Ref list(PyList_New(static_cast<Py_ssize_t>(turns.size())));
  for (std::size_t i = 0; list && i < turns.size(); ++i) {
    PyObject* number = PyLong_FromLongLong(turns[i]);
    if (number == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), number);
  }
  if (!list) return nullptr;
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:L,s:O}", "launches", launches, "replays", replays,
                       "graphs_built", built, "graphs_changed", patched, "arena_bytes",
                       static_cast<long long>(program.arena_bytes), "turns", list.get());
}

PyObject* program_device(PyObject* object, void*) {
  return PyLong_FromLong(reinterpret_cast<CudaProgramObject*>(object)->program->ordinal);
}

PyObject* program_host_calls(PyObject* object, void*) {
  return PyLong_FromSize_t(reinterpret_cast<CudaProgramObject*>(object)->program->hosts.size());
}

PyObject* program_only_enqueues(PyObject* object, void*) {
  return PyBool_FromLong(reinterpret_cast<CudaProgramObject*>(object)->program->only_enqueues);
}

// Of steps on the links beside others, and of those in order.
void collect_keys(const std::vector<Step>& steps, std::set<std::int64_t>& keys) {
  for (const Step& step : steps) {
    for (const CollectivePart& one : step.collectives) keys.insert(one.numbers.key);
    if (step.function != nullptr && std::strcmp(step.function->name, "collective") == 0) {
      keys.insert(step.numbers[1]);
    }
    for (const std::vector<Step>& part : step.parts) collect_keys(part, keys);
  }
}

PyObject* program_collective_keys(PyObject* object, void*) {
  std::set<std::int64_t> keys;
  collect_keys(reinterpret_cast<CudaProgramObject*>(object)->program->steps, keys);
  Ref list(PyList_New(0));
  for (std::int64_t key : keys) {
    Ref number(PyLong_FromLongLong(key));
    if (!list || !number || PyList_Append(list.get(), number.get()) < 0) return nullptr;
  }
  return list ? list.release() : nullptr;
}

PyGetSetDef program_getset[] = {
    {"device", program_device, nullptr, "The number of its device.", nullptr},
    {"host_calls", program_host_calls, nullptr, "How many of its steps the host computes.",
     nullptr},
    {"only_enqueues", program_only_enqueues, nullptr,
     "Whether a call waits neither for the device nor for Python.", nullptr},
    {"collective_keys", program_collective_keys, nullptr,
     "The numbers of the groups of its collectives, in order.", nullptr},
    {"stats", program_stats, nullptr, "How often kernels and graphs were launched.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

void drop(std::vector<ArraySpec>& specs) {
  for (ArraySpec& spec : specs) Py_XDECREF(spec.descr);
}

}  // namespace

CudaProgram& as_cuda_program(PyObject* object) {
  return *reinterpret_cast<CudaProgramObject*>(object)->program;
}

void CudaProgram::find_segments(bool loops) {
  segments.clear();
  for (std::size_t i = 0; graphs && i < steps.size(); ++i) {
    const std::size_t begin = i;
    bool loop = false;
    for (; i < steps.size() && can_be_node(steps[i], loops); ++i) {
      loop = loop || steps[i].kind == StepKind::until;
    }
    if (i > begin + 1 || loop) segments.emplace_back(begin, i, loop);
  }
}

CudaProgram::~CudaProgram() {
  Device* device = modules.empty() ? nullptr : used_device(ordinal);
  if (device != nullptr) {
    const Unlocked unlocked;
    try {
      const Current current(*device);
      device->synchronize();  // what runs from the modules
      for (Segment& segment : segments) segment.graphs.clear();
      for (Module* module : modules) device->modules.give(module);
    } catch (const Failure&) {
      // the device is lost, and its modules with it
    }
  }
  drop(inputs);
  drop(outputs);
  for (PyObject* constant : constants) Py_DECREF(constant);
  for (HostCall& host : hosts) {
    Py_XDECREF(host.callable);
    drop(host.inputs);
    drop(host.outputs);
  }
}

bool init_program(PyObject* module) {
  cuda_program_type = ProgramType<CudaProgramObject>::add<new_checked, program_call>(
      module, "functrans._runtime.CudaProgram", {Py_tp_getset, program_getset});
  return cuda_program_type != nullptr;
}

}  // namespace functrans::cuda
