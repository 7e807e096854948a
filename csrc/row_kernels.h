// The kernels of one instruction set: included by one file each, within an unnamed namespace of its
// own, where kVectorBytes says how wide vectors are.

#include "prefix.h"
#include "row_updates.h"
#include "small_matrices.h"

constexpr RowKernels kKernels{
    scan_of,
    update_of,
    kVectorBytes,
    {Small<float>::cholesky, Small<double>::cholesky},
    {Small<float>::solve, Small<double>::solve},
    {Small<float>::triangular_solve, Small<double>::triangular_solve},
    {Small<float>::triangular_columns, Small<double>::triangular_columns},
    {Small<float>::det, Small<double>::det}};
