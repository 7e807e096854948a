#include "recycled.h"

#include "allocator.h"

namespace functrans {
namespace {

constexpr npy_intp kMostBytes = 1024;  // of one array
constexpr std::size_t kKinds = 64;     // dtypes with shapes, by a hash
constexpr std::size_t kDepth = 64;     // arrays of each
constexpr std::size_t kAllBytes = 512 << 10;
constexpr std::size_t kShells = 128;

struct Kind {
  std::size_t count = 0;
  std::size_t bytes = 0;           // of the memory of each
  PyArrayObject* waiting[kDepth];  // all of one dtype and shape, owned
};

Kind kinds[kKinds];
ArrayObject* shells[kShells];
std::size_t shell_count = 0;
RecycledStats stats;

PyArrayObject_fields* fields_of(PyArrayObject* np) {
  return reinterpret_cast<PyArrayObject_fields*>(np);
}

Kind& kind_of(PyArray_Descr* descr, int ndim, const npy_intp* dims) {
  std::size_t h = reinterpret_cast<std::uintptr_t>(descr) >> 5 ^ static_cast<std::size_t>(ndim);
  for (int i = 0; i < ndim; ++i) h = (h ^ static_cast<std::size_t>(dims[i])) * 0xD6E8FEB86659FD93u;
  return kinds[(h ^ h >> 32) % kKinds];
}

bool same_dims(const npy_intp* a, const npy_intp* b, int ndim) {
  for (int i = 0; i < ndim; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

PyArrayObject* pop(Kind& kind) {
  stats.bytes -= kind.bytes;
  return kind.waiting[--kind.count];
}

}  // namespace

PyArrayObject* take_recycled(PyArray_Descr* descr, int ndim, const npy_intp* dims) noexcept {
  Kind& kind = kind_of(descr, ndim, dims);
  if (kind.count == 0) return nullptr;
  PyArrayObject* np = kind.waiting[kind.count - 1];
  if (PyArray_DESCR(np) != descr || PyArray_NDIM(np) != ndim ||
      !same_dims(PyArray_DIMS(np), dims, ndim)) {
    return nullptr;
  }
  PyArray_ENABLEFLAGS(np, NPY_ARRAY_WRITEABLE);
  ++stats.hits;
  return pop(kind);
}

bool recycle(PyArrayObject* np) noexcept {
  const PyArrayObject_fields* fields = fields_of(np);
  constexpr int wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_OWNDATA;
  if (Py_REFCNT(np) != 1 || !PyArray_CheckExact(np) || (fields->flags & wanted) != wanted ||
      fields->base != nullptr || fields->weakreflist != nullptr ||
      fields->_buffer_info != nullptr || !is_ours(fields->mem_handler) ||
      PyArray_NBYTES(np) > kMostBytes) {
    return false;
  }
  Kind& kind = kind_of(fields->descr, fields->nd, fields->dimensions);
  if (kind.count != 0) {
    PyArrayObject* other = kind.waiting[kind.count - 1];
    if (PyArray_DESCR(other) != fields->descr || PyArray_NDIM(other) != fields->nd ||
        !same_dims(PyArray_DIMS(other), fields->dimensions, fields->nd)) {
      Py_DECREF(pop(kind));  // the kind with this hash that is not used goes, one by one
      return false;
    }
    if (kind.count == kDepth || stats.bytes > kAllBytes) return false;
  } else {
    kind.bytes = block_bytes(fields->data);
  }
  kind.waiting[kind.count++] = np;
  stats.bytes += kind.bytes;
  return true;
}

ArrayObject* take_shell() noexcept {
  if (shell_count != 0) return shells[--shell_count];
  auto* array = static_cast<ArrayObject*>(PyObject_Malloc(sizeof(ArrayObject)));
  if (array == nullptr) PyErr_NoMemory();
  return array;
}

void recycle_shell(ArrayObject* array) noexcept {
  if (shell_count < kShells) {
    shells[shell_count++] = array;
  } else {
    PyObject_Free(array);
  }
}

RecycledStats recycled_stats() noexcept { return stats; }

void drop_recycled() noexcept {
  for (Kind& kind : kinds) {
    while (kind.count != 0) Py_DECREF(pop(kind));
  }
  while (shell_count != 0) PyObject_Free(shells[--shell_count]);
}

}  // namespace functrans
