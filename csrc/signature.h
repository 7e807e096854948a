// Flattening of call arguments into leaves and the signature that keys a jit cache.
#pragma once

#include "common.h"
#include "inline_vector.h"

#include <cstdint>
#include <vector>

namespace functrans {

// Which arguments are static. Positions may be negative; names are interned strings.
struct StaticArguments {
  std::vector<Py_ssize_t> positions;
  PyObject* names = nullptr;  // a frozenset, or null for none
};

// Containers may nest this deep. Python's own limit is no guard: it counts to 10000 C calls in some
// versions, which is more stack than there is.
constexpr int kMaxDepth = 1000;
void raise_too_deep();

enum class Flattened {
  ok,
  unsupported,  // something only Python can flatten: no exception is set
  error,
};

// Words say structure, dtypes and shapes; objects (dict keys, static values, node data) are
// compared by identity or equality, their hashes are among the words.
class Signature {
 public:
  Signature() = default;
  Signature(const Signature&) = delete;
  Signature& operator=(const Signature&) = delete;
  ~Signature();

  Flattened flatten_call(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                         const StaticArguments& statics);
  std::uint64_t hash() const;

  InlineVector<std::uint64_t, 96> words;
  InlineVector<PyObject*, 24> objects;  // owned
  InlineVector<PyObject*, 32> leaves;   // owned

 private:
  Flattened flatten(PyObject* tree);
  Flattened flatten_dict(PyObject* dict);
  Flattened flatten_node(PyObject* tree, PyObject* flatten_function);
  Flattened add_children(PyObject* sequence);
  Flattened add_static(PyObject* value);
  Flattened add_key(PyObject* key);
  bool add_leaf(PyObject* leaf);
  int depth_ = 0;
  std::int64_t token_ = 0;  // of the settings
  void add_object(PyObject* object) { objects.push_back(Py_NewRef(object)); }
};

// The stored form of a signature.
struct SignatureKey {
  std::uint64_t hash = 0;
  std::vector<std::uint64_t> words;
  std::vector<PyObject*> objects;  // owned
  std::size_t leaves = 0;          // how many the call has

  SignatureKey() = default;
  SignatureKey(const SignatureKey& other);
  SignatureKey& operator=(const SignatureKey&) = delete;
  explicit SignatureKey(const Signature& signature);
  ~SignatureKey();
  // 1 equal, 0 different, -1 with an exception set. May run Python code (__eq__ of static values).
  int matches(const Signature& signature) const;
  int matches(const SignatureKey& other) const;
};

// register_node(cls, flatten): instances of exactly `cls` flatten in C++. `flatten(x)` returns
// (children, hashable data); None declares a named tuple.
PyObject* register_node(PyObject*, PyObject* args);
bool is_registered_namedtuple(PyTypeObject* type);

struct DictItem {
  PyObject* key;  // both borrowed from the dict
  PyObject* value;
};
using DictItems = InlineVector<DictItem, 16>;

// Items of an exact dict in the order in which they are flattened, or unsupported.
Flattened sorted_items(PyObject* dict, DictItems& items);

}  // namespace functrans
