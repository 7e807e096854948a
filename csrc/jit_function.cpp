#include "jit_function.h"

#include "hooks.h"
#include "jit_entry.h"
#include "trace_state.h"

#include <structmember.h>

#include <new>
#include <unordered_map>
#include <vector>

namespace functrans {
namespace {

std::uint64_t global_epoch = 0;  // guarded by the GIL

struct Cache {
  std::unordered_map<std::uint64_t, std::vector<EntryPtr>> buckets;
  EntryPtr last;  // the one that ran last: loops call with one signature
  std::uint64_t epoch = 0;
  Py_ssize_t size = 0;
};

struct JitFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* miss;
  PyObject* context;
  PyObject* dict;
  PyObject* weakrefs;
  Cache* cache;
  StaticArguments* statics;
};

// What `miss` receives and gives back to `insert`.
struct KeyObject {
  PyObject_HEAD SignatureKey* key;
  std::uint64_t epoch;
};

PyTypeObject* jit_function_type = nullptr;
PyTypeObject* key_type = nullptr;

JitFunctionObject* as_jit(PyObject* object) { return reinterpret_cast<JitFunctionObject*>(object); }

void clear_cache(JitFunctionObject* self) {
  if (self->cache == nullptr) return;
  // Entries die after the cache is consistent: their destructors may run Python code.
  Cache old;
  std::swap(old, *self->cache);
  self->cache->epoch = global_epoch;
}

// The entry for a signature: null when there is none, or with an exception set. Comparing static
// values may run Python code that changes the cache, so nothing of it is held across a comparison.
EntryPtr find_entry(JitFunctionObject* self, const Signature& signature) {
  EntryPtr candidate = self->cache->last;
  if (candidate != nullptr) {
    const int match = candidate->key.matches(signature);
    if (match < 0) return nullptr;
    if (match > 0) return candidate;
  }
  const std::uint64_t hash = signature.hash();
  for (std::size_t i = 0;; ++i) {
    const auto bucket = self->cache->buckets.find(hash);
    if (bucket == self->cache->buckets.end() || i >= bucket->second.size()) return nullptr;
    candidate = bucket->second[i];
    const int match = candidate->key.matches(signature);
    if (match < 0) return nullptr;
    if (match > 0) {
      self->cache->last = candidate;
      return candidate;
    }
  }
}

// --- a miss

PyObject* call_miss(JitFunctionObject* self, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames, PyObject* key) {
  Ref positional(PyTuple_New(nargs));
  Ref keywords(PyDict_New());
  if (!positional || !keywords) return nullptr;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  }
  const Py_ssize_t count = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) {
      return nullptr;
    }
  }
  Ref miss = Ref::borrow(self->miss);
  PyObject* stack[] = {reinterpret_cast<PyObject*>(self), positional.get(), keywords.get(), key};
  return PyObject_Vectorcall(miss.get(), stack, 4, nullptr);
}

PyObject* make_key(const Signature& signature, std::uint64_t epoch) {
  PyObject* object = key_type->tp_alloc(key_type, 0);
  if (object == nullptr) return nullptr;
  auto* key = reinterpret_cast<KeyObject*>(object);
  Ref owner(object);
  key->key = new SignatureKey(signature);
  key->epoch = epoch;
  return owner.release();
}

PyObject* jit_call_checked(JitFunctionObject* self, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* kwnames) {
  if (tracing()) return call_miss(self, args, nargs, kwnames, Py_None);
  if (self->cache->epoch != global_epoch) clear_cache(self);
  Signature signature;
  const std::uint64_t epoch = global_epoch;
  switch (signature.flatten_call(args, nargs, kwnames, *self->statics)) {
    case Flattened::error: return nullptr;
    case Flattened::unsupported: return call_miss(self, args, nargs, kwnames, Py_None);
    case Flattened::ok: break;
  }
  if (const EntryPtr entry = find_entry(self, signature)) return run_entry(*entry, signature);
  if (PyErr_Occurred()) return nullptr;
  Ref key(make_key(signature, epoch));
  return key ? call_miss(self, args, nargs, kwnames, key.get()) : nullptr;
}

PyObject* jit_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  Ref held = Ref::borrow(self);
  try {
    return leave(jit_call_checked(as_jit(self), args, PyVectorcall_NARGS(nargsf), kwnames));
  } catch (const std::bad_alloc&) {
    return leave(PyErr_NoMemory());
  }
}

PyObject* jit_insert_checked(JitFunctionObject* self, KeyObject* key, PyObject* program,
                             PyObject* structure, PyObject* flags, PyObject* bound,
                             PyObject* forwarded) {
  EntryPtr entry(new Entry(*key->key));
  Ref weak(PySequence_Tuple(flags));
  if (!weak) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(weak.get()); ++i) {
    const int flag = PyObject_IsTrue(PyTuple_GET_ITEM(weak.get(), i));
    if (flag < 0) return nullptr;
    entry->weak.push_back(flag != 0);
  }
  Ref leading(PySequence_Tuple(bound));
  if (!leading) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leading.get()); ++i) {
    entry->bound.push_back(Ref::borrow(PyTuple_GET_ITEM(leading.get(), i)));
  }
  if (!set_program(*entry, program, forwarded)) return nullptr;
  if (PyCallable_Check(structure)) {
    entry->unflatten = Ref::borrow(structure);
  } else {
    entry->structure = Structure::parse(structure);
    if (entry->structure == nullptr) return nullptr;
    if (entry->structure->leaf_count() != entry->weak.size()) {
      PyErr_Format(PyExc_ValueError, "the out structure has %zu leaves, weak_flags has %zu",
                   entry->structure->leaf_count(), entry->weak.size());
      return nullptr;
    }
  }
  if (key->epoch != global_epoch) Py_RETURN_NONE;  // compiled for settings that have gone
  if (self->cache->epoch != global_epoch) clear_cache(self);
  const std::uint64_t hash = entry->key.hash;
  for (std::size_t i = 0;; ++i) {
    std::vector<EntryPtr>& bucket = self->cache->buckets[hash];
    if (i >= bucket.size()) {
      bucket.push_back(entry);
      ++self->cache->size;
      break;
    }
    const EntryPtr present = bucket[i];
    const int match = present->key.matches(entry->key);
    if (match < 0) return nullptr;
    if (match == 0) continue;
    std::vector<EntryPtr>& now = self->cache->buckets[hash];
    if (i < now.size() && now[i] == present) {
      now[i] = entry;
      break;
    }
    i = static_cast<std::size_t>(-1);  // the comparison changed the cache: look again
  }
  EntryPtr previous = entry;
  std::swap(previous, self->cache->last);
  Py_RETURN_NONE;
}

PyObject* jit_insert(PyObject* self, PyObject* args) {
  Ref none(PyTuple_New(0));
  if (!none) return nullptr;
  PyObject *key, *program, *structure, *flags, *bound = none.get(), *forwarded = none.get();
  if (!PyArg_ParseTuple(args, "O!OOO|OO!:insert", key_type, &key, &program, &structure, &flags,
                        &bound, &PyTuple_Type, &forwarded)) {
    return nullptr;
  }
  if (!PyCallable_Check(program)) {
    PyErr_SetString(PyExc_TypeError, "insert: the program must be callable");
    return nullptr;
  }
  try {
    return jit_insert_checked(as_jit(self), reinterpret_cast<KeyObject*>(key), program, structure,
                              flags, bound, forwarded);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// --- the type

bool read_statics(PyObject* argnums, PyObject* argnames, StaticArguments& statics) {
  Ref positions(PySequence_Tuple(argnums));
  if (!positions) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions.get()); ++i) {
    const Py_ssize_t position =
        PyNumber_AsSsize_t(PyTuple_GET_ITEM(positions.get(), i), PyExc_OverflowError);
    if (position == -1 && PyErr_Occurred()) return false;
    statics.positions.push_back(position);
  }
  Ref names(PyFrozenSet_New(argnames));
  if (!names) return false;
  if (PySet_GET_SIZE(names.get()) > 0) statics.names = names.release();
  return true;
}

PyObject* jit_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"miss", "static_argnums", "static_argnames", "context", nullptr};
  Ref none(PyTuple_New(0));
  if (!none) return nullptr;
  PyObject *miss, *argnums = none.get(), *argnames = none.get(), *context = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO:JitFunction", const_cast<char**>(keywords),
                                   &miss, &argnums, &argnames, &context)) {
    return nullptr;
  }
  if (!PyCallable_Check(miss)) {
    PyErr_SetString(PyExc_TypeError, "JitFunction: miss must be callable");
    return nullptr;
  }
  Ref object(type->tp_alloc(type, 0));
  if (!object) return nullptr;
  JitFunctionObject* self = as_jit(object.get());
  self->vectorcall = jit_call;
  self->miss = Py_NewRef(miss);
  self->context = Py_NewRef(context);
  self->cache = new Cache();
  self->cache->epoch = global_epoch;
  self->statics = new StaticArguments();
  if (!read_statics(argnums, argnames, *self->statics)) return nullptr;
  return object.release();
}

int jit_traverse(PyObject* object, visitproc visit, void* arg) {
  JitFunctionObject* self = as_jit(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->miss);
  Py_VISIT(self->context);
  Py_VISIT(self->dict);
  if (self->statics != nullptr) Py_VISIT(self->statics->names);
  if (self->cache == nullptr) return 0;
  for (const auto& bucket : self->cache->buckets) {
    for (const EntryPtr& entry : bucket.second) {
      // An entry that a running call shares stays: what it holds is reachable from that call.
      if (entry.use_count() > (self->cache->last == entry ? 2 : 1)) continue;
      Py_VISIT(entry->program.get());
      Py_VISIT(entry->unflatten.get());
      for (const Ref& one : entry->bound) Py_VISIT(one.get());
      for (PyObject* key : entry->key.objects) Py_VISIT(key);
      if (entry->structure != nullptr) {
        if (const int status = entry->structure->traverse(visit, arg)) return status;
      }
    }
  }
  return 0;
}

int jit_clear(PyObject* object) {
  JitFunctionObject* self = as_jit(object);
  Py_XSETREF(self->miss, Py_NewRef(Py_None));
  Py_XSETREF(self->context, Py_NewRef(Py_None));
  Py_CLEAR(self->dict);
  clear_cache(self);
  return 0;
}

void jit_dealloc(PyObject* object) {
  JitFunctionObject* self = as_jit(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
  Py_XDECREF(self->miss);
  Py_XDECREF(self->context);
  Py_CLEAR(self->dict);
  delete self->cache;
  if (self->statics != nullptr) Py_XDECREF(self->statics->names);
  delete self->statics;
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* jit_descr_get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyObject* jit_cache_clear(PyObject* self, PyObject*) {
  clear_cache(as_jit(self));
  Py_RETURN_NONE;
}

PyObject* jit_cache_size(PyObject* self, PyObject*) {
  JitFunctionObject* jit = as_jit(self);
  return PyLong_FromSsize_t(jit->cache->epoch == global_epoch ? jit->cache->size : 0);
}

// What `jit` says of the function, where it made this one.
PyObject* jit_repr(PyObject* self) {
  JitFunctionObject* jit = as_jit(self);
  PyObject* calls = jit->dict == nullptr ? nullptr : PyDict_GetItemString(jit->dict, "calls");
  if (calls != nullptr) return PyObject_CallMethod(calls, "describe", nullptr);
  return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(self)->tp_name, self);
}

// What `jit` says of the function, where it made this one; else by its name, as functions are.
PyObject* jit_reduce(PyObject* self, PyObject*) {
  JitFunctionObject* jit = as_jit(self);
  PyObject* reduce = jit->dict == nullptr ? nullptr : PyDict_GetItemString(jit->dict, "_reduce");
  if (reduce != nullptr) return PyObject_CallOneArg(reduce, self);
  return PyObject_GetAttrString(self, "__qualname__");
}

void key_dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  delete reinterpret_cast<KeyObject*>(object)->key;
  type->tp_free(object);
  Py_DECREF(type);
}

int key_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  auto* key = reinterpret_cast<KeyObject*>(object)->key;
  if (key == nullptr) return 0;
  for (PyObject* held : key->objects) Py_VISIT(held);
  return 0;
}

PyMethodDef jit_methods[] = {
    {"insert", jit_insert, METH_VARARGS,
     "insert(key, program, out_structure, weak_flags, bound=(), forwarded=()): what later calls with this key "
     "run; bound: arrays that a Program takes before the leaves; forwarded: which leaf each result is, "
     "all on the host: where these are Arrays nothing runs."},
    {"cache_clear", jit_cache_clear, METH_NOARGS, "Forget all entries."},
    {"cache_size", jit_cache_size, METH_NOARGS, "Number of entries."},
    {"__reduce__", jit_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef jit_members[] = {
    {"miss", T_OBJECT, offsetof(JitFunctionObject, miss), READONLY, nullptr},
    {"context", T_OBJECT, offsetof(JitFunctionObject, context), 0, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(JitFunctionObject, vectorcall), READONLY,
     nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(JitFunctionObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(JitFunctionObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef jit_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <typename Function>
PyType_Slot slot(int id, Function function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

PyObject* bump_epoch(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(++global_epoch); }

bool init_jit_function(PyObject* module) {
  PyType_Slot key_slots[] = {
      slot(Py_tp_dealloc, key_dealloc), slot(Py_tp_traverse, key_traverse), {0, nullptr}};
  PyType_Spec key_spec = {
      "functrans._runtime.JitKey", sizeof(KeyObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, key_slots};
  key_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&key_spec));
  if (key_type == nullptr) return false;
  PyType_Slot slots[] = {slot(Py_tp_new, jit_new),
                         slot(Py_tp_dealloc, jit_dealloc),
                         slot(Py_tp_traverse, jit_traverse),
                         slot(Py_tp_clear, jit_clear),
                         slot(Py_tp_call, PyVectorcall_Call),
                         slot(Py_tp_repr, jit_repr),
                         slot(Py_tp_descr_get, jit_descr_get),
                         slot(Py_tp_methods, jit_methods),
                         slot(Py_tp_members, jit_members),
                         slot(Py_tp_getset, jit_getset),
                         {0, nullptr}};
  PyType_Spec spec = {
      "functrans._runtime.JitFunction", sizeof(JitFunctionObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
      slots};
  jit_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return jit_function_type != nullptr &&
         PyModule_AddObjectRef(module, "JitKey", reinterpret_cast<PyObject*>(key_type)) == 0 &&
         PyModule_AddObjectRef(module, "JitFunction",
                               reinterpret_cast<PyObject*>(jit_function_type)) == 0;
}

}  // namespace functrans
