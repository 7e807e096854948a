// The kernels of one instruction set: included by one file each, within an unnamed namespace of its
// own, where kVectorBytes says how wide vectors are.

#include "prefix.h"
#include "row_updates.h"

constexpr RowKernels kKernels{scan_of, update_of};
