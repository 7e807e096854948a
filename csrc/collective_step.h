// The collective that compiled programs call, and the groups that it finds its members in.
#pragma once

#include "common.h"
#include "communicator.h"

#include <cstddef>
#include <vector>
#include <cstdint>

namespace functrans {

namespace cuda {
struct Communicator;
// That of a Python object; null of others.
Communicator* communicator_of(PyObject* object);
}

// A group of the rank that a thread runs, by the number that programs know it by.
struct Group {
  std::int64_t key;
  Communicator* communicator;  // null where Python connects the members
  int member;
  int size;
  cuda::Communicator* nccl = nullptr;  // of a GPU, by NCCL
};

// All groups of that rank; everything is borrowed from who runs the rank.
struct Groups {
  const Group* entries = nullptr;
  std::size_t count = 0;
  PyObject* python = nullptr;  // (kind, key, op, type, x, out, pairs) of other engines
  PyObject* broken = nullptr;  // the class of the error of a communicator that was aborted
};

// From now on those of this thread.
void set_groups_of_thread(const Groups& groups);
const Groups& groups_of_thread();

// The groups of a rank in the capsule that `group_table` made; null with an exception set.
const std::vector<Group>* groups_in(PyObject* capsule);

// Lets programs find `collective` among the library functions.
void register_collective();

}  // namespace functrans
