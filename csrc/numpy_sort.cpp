#include "numpy_sort.h"

#include "common.h"

#include <algorithm>
#include <cmath>

namespace functrans {
namespace {

PyArray_SortFunc* sorts[NPY_NTYPES_LEGACY] = {};

template <typename T>
void sort_with(int type_num, T* values, i64 n) {
  PyArray_SortFunc* sort = sorts[type_num];
  if (sort != nullptr && sort(values, static_cast<npy_intp>(n), nullptr) == 0) return;
  std::sort(values, values + n, [](T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a < b || (std::isnan(b) && !std::isnan(a));
    return a < b;
  });
}

}  // namespace

void init_numpy_sorts() {
  for (int type_num : {NPY_FLOAT, NPY_DOUBLE, NPY_INT16, NPY_INT32, NPY_INT64, NPY_UINT16,
                       NPY_UINT32, NPY_UINT64}) {
    PyArray_Descr* descr = PyArray_DescrFromType(type_num);
    if (descr == nullptr) {
      PyErr_Clear();
      continue;
    }
    sorts[type_num] = PyDataType_GetArrFuncs(descr)->sort[NPY_QUICKSORT];
    Py_DECREF(descr);
  }
}

void sort_values(float* values, i64 n) { sort_with(NPY_FLOAT, values, n); }
void sort_values(double* values, i64 n) { sort_with(NPY_DOUBLE, values, n); }
void sort_values(std::int16_t* values, i64 n) { sort_with(NPY_INT16, values, n); }
void sort_values(std::int32_t* values, i64 n) { sort_with(NPY_INT32, values, n); }
void sort_values(std::int64_t* values, i64 n) { sort_with(NPY_INT64, values, n); }
void sort_values(std::uint16_t* values, i64 n) { sort_with(NPY_UINT16, values, n); }
void sort_values(std::uint32_t* values, i64 n) { sort_with(NPY_UINT32, values, n); }
void sort_values(std::uint64_t* values, i64 n) { sort_with(NPY_UINT64, values, n); }

}  // namespace functrans
