#include "cuda/together.h"

#include "collective_step.h"
#include "cuda/device_call.h"
#include "cuda/nccl.h"

#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace functrans::cuda {
namespace {

// What one GPU runs.
struct Rank {
  PyObject* program = nullptr;
  Ref leaves;
  const std::vector<Group>* groups = nullptr;
  std::unique_ptr<Call> call;
  std::optional<Failure> failure;
  bool no_memory = false;

  Groups here() const { return {groups->data(), groups->size(), nullptr, nullptr}; }
  PyObject* const* items() const { return PySequence_Fast_ITEMS(leaves.get()); }
};

// The groups of a thread in a scope.
class InGroups {
 public:
  explicit InGroups(const Groups& groups) : before_(groups_of_thread()) {
    set_groups_of_thread(groups);
  }
  ~InGroups() { set_groups_of_thread(before_); }
  InGroups(const InGroups&) = delete;
  InGroups& operator=(const InGroups&) = delete;

 private:
  Groups before_;
};

// Who waits for a rank that failed waits in vain.
void give_up(const std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks) {
    for (const Group& group : *rank.groups) {
      if (group.nccl != nullptr) abort_member(*group.nccl);
    }
  }
}

// All steps of a rank; without the GIL.
void enqueue(Rank& rank, const std::vector<Rank>& ranks) noexcept {
  const InGroups in(rank.here());
  try {
    const Current current(rank.call->device);
    rank.call->run_steps(0, rank.call->program.steps.size());
    rank.call->program.ran = true;
  } catch (const Failure& failure) {
    rank.failure = failure;
  } catch (const std::bad_alloc&) {
    rank.no_memory = true;
  }
  if (rank.failure || rank.no_memory) give_up(ranks);
}

// Members that call NCCL for the first time wait for each other: a thread each. Later nothing of a
// call waits, and handing it to a thread would take longer than the call.
void enqueue_all(std::vector<Rank>& ranks) {
  bool waits = synchronous;
  for (const Rank& rank : ranks) waits = waits || !rank.call->program.ran;
  std::vector<std::thread> threads;
  try {
    for (std::size_t k = 1; waits && k < ranks.size(); ++k) {
      threads.emplace_back([&ranks, k] { enqueue(ranks[k], ranks); });
    }
  } catch (const std::exception&) {
    give_up(ranks);
    for (std::thread& one : threads) one.join();
    throw std::bad_alloc();
  }
  enqueue(ranks[0], ranks);
  for (std::size_t k = 1; !waits && k < ranks.size(); ++k) {
    enqueue(ranks[k], ranks);
  }
  for (std::thread& one : threads) one.join();
}

bool read_ranks(PyObject* programs, PyObject* leaves, PyObject* tables, std::vector<Rank>& ranks) {
  const Py_ssize_t count = PyList_GET_SIZE(programs);
  if (count == 0 || PyList_GET_SIZE(leaves) != count || PyList_GET_SIZE(tables) != count) {
    PyErr_SetString(PyExc_ValueError, "a program, its leaves and a group table for each GPU");
    return false;
  }
  for (Py_ssize_t k = 0; k < count; ++k) {
    Rank& rank = ranks.emplace_back();
    rank.program = PyList_GET_ITEM(programs, k);
    if (!is_cuda_program(rank.program)) {
      PyErr_SetString(PyExc_TypeError, "cuda_run_together takes CudaPrograms");
      return false;
    }
    CudaProgram& program = as_cuda_program(rank.program);
    rank.leaves = Ref(PySequence_Fast(PyList_GET_ITEM(leaves, k), "the leaves are a sequence"));
    rank.groups = groups_in(PyList_GET_ITEM(tables, k));
    if (!rank.leaves || rank.groups == nullptr) return false;
    if (!program.only_enqueues ||
        static_cast<std::size_t>(PySequence_Fast_GET_SIZE(rank.leaves.get())) !=
            program.inputs.size()) {
      PyErr_SetString(PyExc_ValueError, program.only_enqueues
                                            ? "a program has another number of inputs"
                                            : "a program waits for the device or for Python");
      return false;
    }
  }
  return true;
}

// First everything that may ask the driver for memory, then the steps.
bool begin_all(std::vector<Rank>& ranks) {
  for (Rank& rank : ranks) {
    CudaProgram& program = as_cuda_program(rank.program);
    const InGroups in(rank.here());
    rank.call = std::make_unique<Call>(program, get_device(program.ordinal));
    if (!rank.call->begin(rank.items())) return false;
  }
  return true;
}

PyObject* results_of(std::vector<Rank>& ranks) {
  Ref found(PyList_New(static_cast<Py_ssize_t>(ranks.size())));
  if (!found) return nullptr;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(ranks[k].call->program.outputs.size()));
    if (list == nullptr) return nullptr;
    PyList_SET_ITEM(found.get(), static_cast<Py_ssize_t>(k), list);
    if (!ranks[k].call->finish(ranks[k].items(), nullptr, PySequence_Fast_ITEMS(list))) {
      return nullptr;
    }
  }
  return found.release();
}

}  // namespace

PyObject* run_together(PyObject*, PyObject* args) {
  PyObject *programs, *leaves, *tables;
  if (!PyArg_ParseTuple(args, "O!O!O!:cuda_run_together", &PyList_Type, &programs, &PyList_Type,
                        &leaves, &PyList_Type, &tables)) {
    return nullptr;
  }
  std::vector<Rank> ranks;
  ranks.reserve(static_cast<std::size_t>(PyList_GET_SIZE(programs)));
  if (!read_ranks(programs, leaves, tables, ranks)) return nullptr;
  try {
    if (!begin_all(ranks)) return nullptr;
    {
      const Unlocked unlocked;
      enqueue_all(ranks);
    }
    for (const Rank& rank : ranks) {
      if (rank.failure && rank.failure->note.find(kGivenUp) == std::string::npos) {
        throw *rank.failure;
      }
    }
    for (const Rank& rank : ranks) {
      if (rank.no_memory) throw std::bad_alloc();
      if (rank.failure) throw *rank.failure;
    }
    return results_of(ranks);
  } catch (const Failure& failure) {
    raise_failure(failure);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

}  // namespace functrans::cuda
