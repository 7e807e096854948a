#include "signature.h"

#include "array.h"
#include "trace_state.h"

#include <algorithm>
#include <unordered_map>

namespace functrans {
namespace {

enum Tag : std::uint64_t {
  tag_none = 1,
  tag_tuple,
  tag_list,
  tag_dict,
  tag_node,
  tag_array,
  tag_ndarray,
  tag_scalar,
  tag_bool,
  tag_int,
  tag_float,
  tag_complex,
  tag_static,
  tag_call
};

std::uint64_t word(Tag tag, std::uint64_t value) { return tag | value << 8; }

// Types registered from Python; they stay alive for ever, as pytree types do.
std::unordered_map<PyTypeObject*, PyObject*>& nodes() {
  static auto* table = new std::unordered_map<PyTypeObject*, PyObject*>();
  return *table;
}

// The dtype as a number, or -1 where the number alone does not tell it.
int dtype_number(PyArray_Descr* descr) {
  const int type_num = descr->type_num;
  if (!PyArray_ISNBO(descr->byteorder) || PyTypeNum_ISFLEXIBLE(type_num) ||
      PyTypeNum_ISDATETIME(type_num) || type_num == NPY_OBJECT || type_num == NPY_VSTRING) {
    return -1;
  }
  return type_num;
}

// Whether all keys are exact strings; fast comparison for the usual kind.
int compare_strings(PyObject* a, PyObject* b) {
  if (PyUnicode_IS_COMPACT_ASCII(a) && PyUnicode_IS_COMPACT_ASCII(b)) {
    const Py_ssize_t x = PyUnicode_GET_LENGTH(a);
    const Py_ssize_t y = PyUnicode_GET_LENGTH(b);
    const int order = std::memcmp(PyUnicode_1BYTE_DATA(a), PyUnicode_1BYTE_DATA(b),
                                  static_cast<std::size_t>(std::min(x, y)));
    return order != 0 ? order : (x > y) - (x < y);
  }
  return PyUnicode_Compare(a, b);
}

}  // namespace

void raise_too_deep() {
  PyErr_Format(PyExc_RecursionError, "containers are nested more than %d deep", kMaxDepth);
}

Signature::~Signature() {
  for (PyObject* object : objects) Py_DECREF(object);
  for (PyObject* leaf : leaves) Py_DECREF(leaf);
}

Flattened sorted_items(PyObject* dict, DictItems& items) {
  DictItem item{};
  Py_ssize_t position = 0;
  bool strings = true;
  bool integers = true;
  while (PyDict_Next(dict, &position, &item.key, &item.value)) {
    strings &= PyUnicode_CheckExact(item.key) != 0;
    integers &= PyLong_CheckExact(item.key) != 0;
    items.push_back(item);
  }
  if (strings) {
    auto less = [](const DictItem& a, const DictItem& b) {
      return compare_strings(a.key, b.key) < 0;
    };
    if (!std::is_sorted(items.begin(), items.end(), less)) {
      std::sort(items.begin(), items.end(), less);
    }
    return Flattened::ok;
  }
  if (!integers) return Flattened::unsupported;
  for (const DictItem& i : items) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(i.key, &overflow);
    if (overflow != 0) return Flattened::unsupported;
  }
  std::sort(items.begin(), items.end(), [](const DictItem& a, const DictItem& b) {
    return PyLong_AsLongLong(a.key) < PyLong_AsLongLong(b.key);
  });
  return Flattened::ok;
}

Flattened Signature::add_key(PyObject* key) {
  const Py_hash_t hash = PyObject_Hash(key);  // exact str or int: cannot fail
  words.push_back(static_cast<std::uint64_t>(hash));
  add_object(key);
  return Flattened::ok;
}

Flattened Signature::add_static(PyObject* value) {
  const Py_hash_t hash = PyObject_Hash(value);
  if (hash == -1) {  // the slow path says which argument it is
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return Flattened::error;
    PyErr_Clear();
    return Flattened::unsupported;
  }
  words.push_back(tag_static);
  words.push_back(reinterpret_cast<std::uintptr_t>(Py_TYPE(value)));
  words.push_back(static_cast<std::uint64_t>(hash));
  add_object(value);
  return Flattened::ok;
}

namespace {

// The type number of 32 bits in place of one of 64, or -1 for any other.
int narrowed(int type_num) {
  if (type_num == NPY_DOUBLE) return NPY_FLOAT;
  if (type_num == NPY_CDOUBLE) return NPY_CFLOAT;
  if (PyTypeNum_ISUNSIGNED(type_num) && type_num >= NPY_ULONG) return NPY_UINT;
  if (PyTypeNum_ISSIGNED(type_num) && type_num >= NPY_LONG) return NPY_INT;
  return -1;
}

// A value of NumPy in 32 bits where it has 64; null where there is nothing to do, or with an error.
Ref narrow_value(PyObject* value) {
  const bool array = PyArray_CheckExact(value);
  if (!array && !PyArray_IsScalar(value, Generic)) return Ref();
  Ref descr(array ? Py_NewRef(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(value)))
                  : reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(value)));
  if (!descr) return Ref();
  const int number = narrowed(reinterpret_cast<PyArray_Descr*>(descr.get())->type_num);
  if (number < 0) return Ref();
  PyArray_Descr* wanted = PyArray_DescrFromType(number);
  return Ref(PyArray_FromAny(value, wanted, 0, 0, NPY_ARRAY_FORCECAST, nullptr));
}

}  // namespace

bool Signature::add_leaf(PyObject* leaf) {
  PyArrayObject* np = nullptr;
  Ref narrow;
  if (token_ < 0) {  // Config.narrows
    narrow = narrow_value(leaf);
    if (narrow) leaf = narrow.get();
    if (PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
  }
  std::uint64_t head = 0;
  PyTypeObject* type = Py_TYPE(leaf);
  if (type == array_type) {
    np = as_array(leaf)->np;
    // one byte: the place has seven bits
    head = word(tag_array, static_cast<std::uint64_t>(as_array(leaf)->weak_type) |
                               static_cast<std::uint64_t>(as_array(leaf)->place) << 1);
    if (is_sharded(as_array(leaf))) {
      PyObject* shards = shards_of(as_array(leaf));
      Ref sharding(shards == nullptr ? nullptr : PyObject_GetAttrString(shards, "sharding"));
      if (!sharding || add_static(sharding.get()) != Flattened::ok) {
        PyErr_Clear();
        return false;
      }
    }
  } else if (type == &PyFloat_Type) {
    words.push_back(tag_float);
  } else if (type == &PyLong_Type) {
    words.push_back(tag_int);
  } else if (type == &PyBool_Type) {
    words.push_back(tag_bool);
  } else if (type == &PyComplex_Type) {
    words.push_back(tag_complex);
  } else if (PyArray_CheckExact(leaf)) {
    np = reinterpret_cast<PyArrayObject*>(leaf);
    head = tag_ndarray;
  } else if (PyArray_IsScalar(leaf, Generic)) {
    Ref descr(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(leaf)));
    if (!descr) {
      PyErr_Clear();
      return false;
    }
    const int number = dtype_number(reinterpret_cast<PyArray_Descr*>(descr.get()));
    if (number < 0) return false;
    words.push_back(word(tag_scalar, static_cast<std::uint64_t>(number)));
  } else {
    return false;
  }
  if (np != nullptr) {
    const int number = dtype_number(PyArray_DESCR(np));
    if (number < 0) return false;
    const int ndim = PyArray_NDIM(np);
    words.push_back(head | static_cast<std::uint64_t>(number) << 16 |
                    static_cast<std::uint64_t>(ndim) << 48);
    for (int i = 0; i < ndim; ++i) words.push_back(static_cast<std::uint64_t>(PyArray_DIM(np, i)));
  }
  leaves.push_back(Py_NewRef(leaf));
  return true;
}

Flattened Signature::add_children(PyObject* sequence) {
  // The size is read anew each time: flattening a node may run Python code that changes a list.
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
    Ref child = Ref::borrow(PySequence_Fast_GET_ITEM(sequence, i));
    const Flattened status = flatten(child.get());
    if (status != Flattened::ok) return status;
  }
  return Flattened::ok;
}

Flattened Signature::flatten_dict(PyObject* dict) {
  DictItems items;
  Flattened status = sorted_items(dict, items);
  if (status != Flattened::ok) return status;
  words.push_back(word(tag_dict, items.size()));
  for (const DictItem& item : items) {
    add_key(item.key);
    Py_INCREF(item.value);  // flattening a node may run Python code that changes the dict
  }
  for (const DictItem& item : items) {
    if (status == Flattened::ok) status = flatten(item.value);
    Py_DECREF(item.value);
  }
  return status;
}

Flattened Signature::flatten_node(PyObject* tree, PyObject* flatten_function) {
  words.push_back(tag_node);
  words.push_back(reinterpret_cast<std::uintptr_t>(Py_TYPE(tree)));
  if (flatten_function == Py_None) {
    words.push_back(static_cast<std::uint64_t>(PyTuple_GET_SIZE(tree)));
    return add_children(tree);
  }
  Ref pair(PyObject_CallOneArg(flatten_function, tree));
  if (!pair) return Flattened::error;
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
    PyErr_Format(PyExc_TypeError, "the flatten function of %s must return (children, data)",
                 Py_TYPE(tree)->tp_name);
    return Flattened::error;
  }
  Ref children(PySequence_Tuple(PyTuple_GET_ITEM(pair.get(), 0)));
  if (!children) return Flattened::error;
  words.push_back(static_cast<std::uint64_t>(PyTuple_GET_SIZE(children.get())));
  const Flattened status = add_static(PyTuple_GET_ITEM(pair.get(), 1));
  return status == Flattened::ok ? add_children(children.get()) : status;
}

// Remembers a class of named tuples, which are nodes without being registered.
static bool note_namedtuple(PyTypeObject* type) {
  if (!PyType_IsSubtype(type, &PyTuple_Type)) return false;
  Ref cls = Ref::borrow(reinterpret_cast<PyObject*>(type));
  Ref fields(PyObject_GetAttrString(cls.get(), "_fields"));
  if (!fields || !PyTuple_CheckExact(fields.get()) ||
      !PyObject_HasAttrString(cls.get(), "_make") ||
      !PyObject_HasAttrString(cls.get(), "_asdict")) {
    PyErr_Clear();
    return false;
  }
  Py_INCREF(cls.get());
  nodes()[type] = Py_NewRef(Py_None);
  return true;
}

Flattened Signature::flatten(PyObject* tree) {
  PyTypeObject* type = Py_TYPE(tree);
  if (type == array_type) return add_leaf(tree) ? Flattened::ok : Flattened::unsupported;
  if (tree == Py_None) {
    words.push_back(tag_none);
    return Flattened::ok;
  }
  const bool tuple = type == &PyTuple_Type;
  const bool list = type == &PyList_Type;
  const bool dict = type == &PyDict_Type;
  PyObject* flatten_function = nullptr;
  if (!tuple && !list && !dict) {
    if (add_leaf(tree)) return Flattened::ok;
    const auto node = nodes().find(type);
    if (node != nodes().end()) {
      flatten_function = node->second;
    } else if (note_namedtuple(type)) {
      flatten_function = Py_None;
    } else {
      return Flattened::unsupported;
    }
  }
  if (++depth_ > kMaxDepth) {
    raise_too_deep();
    return Flattened::error;
  }
  Flattened status;
  if (dict) {
    status = flatten_dict(tree);
  } else if (flatten_function != nullptr) {
    Ref held = Ref::borrow(flatten_function);
    status = flatten_node(tree, held.get());
  } else {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(tree);
    words.push_back(word(tuple ? tag_tuple : tag_list, static_cast<std::uint64_t>(size)));
    status = add_children(tree);
    if (size != PySequence_Fast_GET_SIZE(tree)) status = Flattened::unsupported;
  }
  --depth_;
  return status;
}

Flattened Signature::flatten_call(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                                  const StaticArguments& statics) {
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  words.push_back(word(
      tag_call, static_cast<std::uint64_t>(nargs) << 24 | static_cast<std::uint64_t>(keywords)));
  if (!read_context_token(token_)) return Flattened::error;
  words.push_back(static_cast<std::uint64_t>(token_));
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    bool is_static = false;
    for (Py_ssize_t position : statics.positions) {
      is_static |= position == i || position + nargs == i;
    }
    const Flattened status = is_static ? add_static(args[i]) : flatten(args[i]);
    if (status != Flattened::ok) return status;
  }
  if (keywords == 0) return Flattened::ok;
  InlineVector<Py_ssize_t, 32> order;
  for (Py_ssize_t i = 0; i < keywords; ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [kwnames](Py_ssize_t a, Py_ssize_t b) {
    return compare_strings(PyTuple_GET_ITEM(kwnames, a), PyTuple_GET_ITEM(kwnames, b)) < 0;
  });
  for (Py_ssize_t i : order) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    add_key(name);
    const int is_static = statics.names == nullptr ? 0 : PySet_Contains(statics.names, name);
    if (is_static < 0) return Flattened::error;
    const Flattened status = is_static ? add_static(args[nargs + i]) : flatten(args[nargs + i]);
    if (status != Flattened::ok) return status;
  }
  return Flattened::ok;
}

std::uint64_t Signature::hash() const {
  std::uint64_t h = 0x9E3779B97F4A7C15u ^ words.size();
  for (std::uint64_t w : words) {
    h = (h ^ w) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

SignatureKey::SignatureKey(const Signature& signature)
    : hash(signature.hash()),
      words(signature.words.begin(), signature.words.end()),
      objects(signature.objects.begin(), signature.objects.end()),
      leaves(signature.leaves.size()) {
  for (PyObject* object : objects) Py_INCREF(object);
}

SignatureKey::SignatureKey(const SignatureKey& other)
    : hash(other.hash), words(other.words), objects(other.objects), leaves(other.leaves) {
  for (PyObject* object : objects) Py_INCREF(object);
}

SignatureKey::~SignatureKey() {
  for (PyObject* object : objects) Py_DECREF(object);
}

namespace {

int same_objects(PyObject* const* a, PyObject* const* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (a[i] == b[i]) continue;
    if (Py_TYPE(a[i]) != Py_TYPE(b[i])) return 0;
    const int equal = PyObject_RichCompareBool(a[i], b[i], Py_EQ);
    if (equal != 1) return equal;
  }
  return 1;
}

}  // namespace

int SignatureKey::matches(const Signature& signature) const {
  if (words.size() != signature.words.size() ||
      objects.size() != signature.objects.size() ||
      std::memcmp(words.data(), signature.words.data(), words.size() * sizeof(words[0])) != 0) {
    return 0;
  }
  return same_objects(objects.data(), signature.objects.data(), objects.size());
}

int SignatureKey::matches(const SignatureKey& other) const {
  if (hash != other.hash || words != other.words || objects.size() != other.objects.size())
    return 0;
  return same_objects(objects.data(), other.objects.data(), objects.size());
}

PyObject* register_node(PyObject*, PyObject* args) {
  PyObject* cls = nullptr;
  PyObject* flatten = nullptr;
  if (!PyArg_ParseTuple(args, "O!O:register_node", &PyType_Type, &cls, &flatten)) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (flatten == Py_None ? !PyType_IsSubtype(type, &PyTuple_Type) : !PyCallable_Check(flatten)) {
    PyErr_SetString(PyExc_TypeError,
                    "register_node takes (class, flatten function), or (named tuple "
                    "class, None)");
    return nullptr;
  }
  Py_INCREF(cls);
  PyObject*& slot = nodes()[type];
  Py_XSETREF(slot, Py_NewRef(flatten));
  Py_RETURN_NONE;
}

bool is_registered_namedtuple(PyTypeObject* type) {
  const auto node = nodes().find(type);
  return node != nodes().end() && node->second == Py_None;
}

}  // namespace functrans
