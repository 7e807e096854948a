#include "key_dtype.h"

#include <cstdint>
#include <cstring>

namespace functrans {

int key_type_numbers[kGenerators] = {-1, -1};

namespace {

// Arrays of keys are moved, selected and joined by NumPy; there is no arithmetic on keys, nor a
// conversion from or to numbers. `ndarray.view` reads the words.
constexpr int kBytes = 8;

// What is different for each generator: a dtype, its name and the class of its scalars.
constexpr const char* kNames[kGenerators] = {"key<fry>", "key<philox>"};
constexpr const char* kClasses[kGenerators] = {"functrans._runtime.key<fry>",
                                               "functrans._runtime.key<philox>"};
constexpr const char* kDtypes[kGenerators] = {"key_dtype", "philox_dtype"};

struct KeyScalar {
  PyObject_HEAD std::uint32_t words[2];
};

PyTypeObject* scalar_types[kGenerators] = {};

int generator_of(PyObject* scalar) {
  for (int i = 0; i < kGenerators; ++i) {
    if (Py_TYPE(scalar) == scalar_types[i]) return i;
  }
  return -1;
}

std::uint32_t* words_of(PyObject* key) { return reinterpret_cast<KeyScalar*>(key)->words; }

template <int kGenerator>
PyObject* get_item(void* data, void*) {
  auto* key = PyObject_New(KeyScalar, scalar_types[kGenerator]);
  if (key != nullptr) std::memcpy(key->words, data, kBytes);
  return reinterpret_cast<PyObject*>(key);
}

void scalar_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* scalar_repr(PyObject* self) {
  const std::uint32_t* words = words_of(self);
  return PyUnicode_FromFormat("%s(%u, %u)", kNames[generator_of(self)], words[0], words[1]);
}

Py_hash_t scalar_hash(PyObject* self) {
  const std::uint32_t* words = words_of(self);
  const auto mixed = (static_cast<std::uint64_t>(words[0]) << 32 | words[1]) * 0x9E3779B97F4A7C15U;
  const auto hash = static_cast<Py_hash_t>(mixed);
  return hash == -1 ? -2 : hash;
}

PyObject* scalar_compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || generator_of(a) < 0 || Py_TYPE(a) != Py_TYPE(b)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  const bool equal = std::memcmp(words_of(a), words_of(b), kBytes) == 0;
  return PyBool_FromLong(static_cast<long>(equal == (op == Py_EQ)));
}

// NumPy would convert a scalar by the array that it makes of it, and that by its scalar.
PyObject* refuse(PyObject*) {
  PyErr_SetString(PyExc_TypeError, "a random key is not a number; ft.random.key_data(key) gives "
                                   "its two words");
  return nullptr;
}
PyObject* refuse_method(PyObject* self, PyObject*) { return refuse(self); }
int refuse_bool(PyObject* self) {
  refuse(self);
  return -1;
}

PyMethodDef scalar_methods[] = {{"__complex__", refuse_method, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

template <int kGenerator>
int set_item(PyObject* value, void* data, void*) {
  if (Py_TYPE(value) == scalar_types[kGenerator]) {
    std::memcpy(data, words_of(value), kBytes);
    return 0;
  }
  if (PyArray_Check(value)) {
    auto* np = reinterpret_cast<PyArrayObject*>(value);
    if (PyArray_TYPE(np) == key_type_numbers[kGenerator] && PyArray_SIZE(np) == 1) {
      std::memcpy(data, PyArray_DATA(np), kBytes);
      return 0;
    }
  }
  PyErr_Format(PyExc_TypeError, "a %s cannot be made of %.200s", kNames[kGenerator],
               Py_TYPE(value)->tp_name);
  return -1;
}

void copy_one(void* to, void* from, int, void*) {
  if (from != nullptr) std::memcpy(to, from, kBytes);
}

void copy_many(void* to, npy_intp to_stride, void* from, npy_intp from_stride, npy_intp count, int,
               void*) {
  if (from == nullptr) return;
  for (npy_intp i = 0; i < count; ++i) {
    std::memcpy(static_cast<char*>(to) + i * to_stride,
                static_cast<char*>(from) + i * from_stride, kBytes);
  }
}

npy_bool is_nonzero(void* data, void*) {
  std::uint64_t words;
  std::memcpy(&words, data, kBytes);
  return words != 0 ? NPY_TRUE : NPY_FALSE;
}

// The inner loop of NumPy's equal and not_equal.
template <bool kEqual>
void compare_loop(char** args, const npy_intp* counts, const npy_intp* steps, void*) {
  for (npy_intp i = 0; i < counts[0]; ++i) {
    const bool same = std::memcmp(args[0] + i * steps[0], args[1] + i * steps[1], kBytes) == 0;
    *reinterpret_cast<npy_bool*>(args[2] + i * steps[2]) = same == kEqual ? NPY_TRUE : NPY_FALSE;
  }
}

bool add_comparison(const char* name, int type_number, PyUFuncGenericFunction loop) {
  Ref numpy(PyImport_ImportModule("numpy"));
  if (!numpy) return false;
  Ref ufunc(PyObject_GetAttrString(numpy.get(), name));
  int types[] = {type_number, type_number, NPY_BOOL};
  return ufunc && PyUFunc_RegisterLoopForType(reinterpret_cast<PyUFuncObject*>(ufunc.get()),
                                              type_number, loop, types, nullptr) == 0;
}

template <typename Function>
void* slot(Function function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* make_scalar_type(int generator) {
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("One key of a generator, in NumPy.")},
                         {Py_tp_dealloc, slot(scalar_dealloc)},
                         {Py_tp_repr, slot(scalar_repr)},
                         {Py_tp_str, slot(scalar_repr)},
                         {Py_tp_hash, slot(scalar_hash)},
                         {Py_tp_richcompare, slot(scalar_compare)},
                         {Py_tp_methods, scalar_methods},
                         {Py_nb_bool, slot(refuse_bool)},
                         {Py_nb_int, slot(refuse)},
                         {Py_nb_float, slot(refuse)},
                         {0, nullptr}};
  PyType_Spec spec = {kClasses[generator], sizeof(KeyScalar), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  Ref bases(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyGenericArrType_Type)));
  if (!bases) return nullptr;
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, bases.get()));
}

template <int kGenerator>
bool add_dtype(PyObject* module) {
  PyTypeObject* scalar = scalar_types[kGenerator] = make_scalar_type(kGenerator);
  if (scalar == nullptr) return false;
  static PyArray_ArrFuncs functions;  // NumPy keeps pointers to both
  static PyArray_DescrProto proto;
  PyArray_InitArrFuncs(&functions);
  functions.getitem = get_item<kGenerator>;
  functions.setitem = set_item<kGenerator>;
  functions.copyswap = copy_one;
  functions.copyswapn = copy_many;
  functions.nonzero = is_nonzero;
  std::memset(&proto, 0, sizeof(proto));
  PyObject_Init(reinterpret_cast<PyObject*>(&proto), &PyArrayDescr_Type);
  proto.typeobj = scalar;
  proto.kind = 'V';
  proto.type = 'k';
  proto.byteorder = '=';
  proto.flags = NPY_USE_GETITEM | NPY_USE_SETITEM;
  proto.elsize = kBytes;
  proto.alignment = kBytes;
  proto.f = &functions;
  const int number = key_type_numbers[kGenerator] = PyArray_RegisterDataType(&proto);
  if (number < 0) return false;
  Ref dtype(reinterpret_cast<PyObject*>(PyArray_DescrFromType(number)));
  auto* type = reinterpret_cast<PyObject*>(scalar);
  // the name of the class is where pickle looks for it
  return dtype && add_comparison("equal", number, compare_loop<true>) &&
         add_comparison("not_equal", number, compare_loop<false>) &&
         PyObject_SetAttrString(type, "dtype", dtype.get()) == 0 &&
         PyModule_AddObjectRef(module, kNames[kGenerator], type) == 0 &&
         PyModule_AddObjectRef(module, kDtypes[kGenerator], dtype.get()) == 0;
}

}  // namespace

bool init_key_dtypes(PyObject* module) { return add_dtype<0>(module) && add_dtype<1>(module); }

}  // namespace functrans
