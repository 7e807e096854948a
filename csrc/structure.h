// The structure of a jit function's result: how output leaves become the user's containers.
#pragma once

#include "common.h"

#include <memory>
#include <vector>

namespace functrans {

class Structure {
 public:
  // From a tree whose leaves are `...`: tuples, lists, dicts, None, registered named tuples. Null
  // with an exception set when it holds anything else.
  static std::unique_ptr<Structure> parse(PyObject* tree, int depth = 0);
  ~Structure();

  std::size_t leaf_count() const { return leaf_count_; }
  // Takes leaves from `next` on; the caller keeps its own references.
  PyObject* build(PyObject* const*& next) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Kind { leaf, none, tuple, list, dict, namedtuple };
  Structure() = default;
  Kind kind_ = Kind::leaf;
  PyObject* type_ = nullptr;      // of a named tuple, owned
  PyObject* template_ = nullptr;  // of a dict: its keys with None, owned
  std::vector<PyObject*> keys_;   // of a dict, owned
  std::vector<std::unique_ptr<Structure>> children_;
  std::size_t leaf_count_ = 0;
};

}  // namespace functrans
