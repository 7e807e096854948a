// ArrayBase: the immutable array, a typed shell around a read-only ndarray.
#pragma once

#include "common.h"
#include "hooks.h"

#include <cstdint>

namespace functrans {

namespace cuda {
struct DeviceBuffer;
}

struct ArrayObject {
  PyObject_HEAD PyArrayObject* np;  // exact ndarray, WRITEABLE cleared
  PyObject* aval;                   // made on first use
  PyObject* weakrefs;
  // NumPy type number when inner loops may run on the data directly, or -1. kDonated: no data.
  // kOnDevice: `np` has the shape and dtype alone, until fetch_data copies the data there.
  std::int16_t loop_type;
  bool weak_type;
  bool c_contiguous;
  std::uint8_t place;  // kAnywhere, kPutOnCpu, or the number of a device + 1
  ArrayObject *before, *behind;  // of the list of all arrays, which the interpreter's lock guards
};

// An Array whose place is a device: apart, so that those on the CPU are no larger for it.
struct DeviceArrayObject {
  ArrayObject array;
  cuda::DeviceBuffer* buffer;  // null when donated
};

// An Array whose place is a mesh of devices: its shards and their sharding are a Python object.
struct ShardedArrayObject {
  ArrayObject array;
  PyObject* shards;  // owned; null when donated
};

constexpr std::int16_t kDonated = -2;
constexpr std::int16_t kOnDevice = -3;
constexpr std::uint8_t kAnywhere = 0;    // on the CPU, because nobody said where
constexpr std::uint8_t kPutOnCpu = 127;  // by device_put
constexpr std::uint8_t kSharded = 126;   // in shards, on the devices that these name

extern PyTypeObject* array_base_type;  // ArrayBase
extern PyTypeObject* array_type;       // what results are instances of; ArrayBase until registered

inline bool is_array(PyObject* object) { return PyObject_TypeCheck(object, array_base_type); }
inline bool is_exact_array(PyObject* object) { return Py_TYPE(object) == array_type; }
inline ArrayObject* as_array(PyObject* object) { return reinterpret_cast<ArrayObject*>(object); }

// Whether the data is there: false with an exception set when it was donated to a jitted call.
// Shape and dtype outlive the data; whatever reads elements asks this first.
// It may replace `np`: read that afterwards.
bool raise_donated(ArrayObject* array);
bool fetch_data(ArrayObject* array);
inline bool has_data(ArrayObject* array) {
  return array->loop_type > kDonated || fetch_data(array);
}
// Eager operations leave arrays on a device to the Python rules, also once the host has a copy.
inline bool has_device_place(const ArrayObject* array) {
  return array->place != kAnywhere && array->place != kPutOnCpu;
}
inline bool is_sharded(const ArrayObject* array) { return array->place == kSharded; }
inline PyObject*& shards_of(ArrayObject* array) {
  return reinterpret_cast<ShardedArrayObject*>(array)->shards;
}
inline cuda::DeviceBuffer* buffer_of(ArrayObject* array) {
  return has_device_place(array) && !is_sharded(array)
             ? reinterpret_cast<DeviceArrayObject*>(array)->buffer
             : nullptr;
}
// Whether the data is elsewhere than in the memory that NumPy sees.
inline bool on_device(ArrayObject* array) {
  return is_sharded(array) ? shards_of(array) != nullptr : buffer_of(array) != nullptr;
}
void release_buffer(cuda::DeviceBuffer* buffer) noexcept;
cuda::DeviceBuffer* retain_buffer(cuda::DeviceBuffer* buffer) noexcept;
// An ndarray that has a shape and a dtype and no data: all elements are one static zero.
PyArrayObject* shape_only(PyArray_Descr* descr, int ndim, const npy_intp* dims);
// An Array on a device; takes over `np`, which has the shape, and one reference to the buffer.
PyObject* wrap_buffer(PyArrayObject* np, bool weak_type, std::uint8_t place,
                      cuda::DeviceBuffer* buffer);
// An Array in shards; takes over `np`, which has the shape, and borrows the shards.
PyObject* wrap_shards(PyArrayObject* np, bool weak_type, PyObject* shards);
PyObject* sharded_array(PyObject*, PyObject* args);
PyObject* get_shards(PyObject*, PyObject* object);
PyObject* donate_array(PyObject*, PyObject* object);
// The same data with another weak_type and place, without a copy.
PyObject* share_array(ArrayObject* array, bool weak_type, std::uint8_t place);
// Keeps the data where it is, also if the array is donated before this reference ends.
inline Ref hold_data(ArrayObject* array) {
  return Ref::borrow(reinterpret_cast<PyObject*>(array->np));
}
// Takes the ndarray out of `array`, whose data is gone from then on; null on failure.
PyArrayObject* take_data(ArrayObject* array);

// Wraps without copying; steals the reference to `np` (also on failure) and clears WRITEABLE.
PyObject* wrap_ndarray(PyArrayObject* np, bool weak_type, PyTypeObject* type);
inline PyObject* wrap_ndarray(PyArrayObject* np, bool weak_type = false) {
  return wrap_ndarray(np, weak_type, array_type);
}
// Accepts an ndarray of any subclass or a NumPy scalar; TypeError otherwise.
PyObject* wrap_object(PyObject* object, bool weak_type, PyTypeObject* type);

// live_arrays(): a list of those whose data is there.
PyObject* live_arrays(PyObject*, PyObject*);
bool init_array(PyObject* module);
PyObject* set_array_type(PyObject*, PyObject* type);
PyObject* wrap(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* rebuild_array(PyObject*, PyObject* const* args, Py_ssize_t nargs);

// array_number.cpp
extern PyType_Slot array_number_slots[];
PyObject* array_richcompare(PyObject* a, PyObject* b, int op);
PyObject* array_complex(PyObject* self, PyObject*);
bool init_array_number();

// array_index.cpp
PyObject* array_subscript(PyObject* self, PyObject* key);
int array_ass_subscript(PyObject* self, PyObject* key, PyObject* value);
PyObject* array_iter(PyObject* self);
Py_ssize_t array_length(PyObject* self);
bool init_array_index();

// array_export.cpp
// Whether the elements are numbers, which others may read: false with an exception set for keys.
bool has_numbers(PyObject* self);
int array_getbuffer(PyObject* self, Py_buffer* view, int flags);
PyObject* array_array(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* array_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* array_dlpack_device(PyObject* self, PyObject*);
PyObject* array_reduce(PyObject* self, PyObject*);

}  // namespace functrans
