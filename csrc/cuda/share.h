// Device memory shared with other libraries: DLPack and the CUDA array interface.
#pragma once

#include "array.h"

namespace functrans::cuda {

// set_dlpack_types([(dtype, code, bits)]): how DLPack names dtypes.
PyObject* set_dlpack_types(PyObject*, PyObject* table);
// export_dlpack(array, stream, versioned, copied): a capsule; None as stream: nobody waits.
PyObject* export_dlpack(PyObject*, PyObject* args);
// import_dlpack(capsule): an Array on the capsule's memory.
PyObject* import_dlpack(PyObject*, PyObject* capsule);
// import_memory(pointer, dtype, shape, stream, owner): an Array on memory that `owner` keeps.
PyObject* import_memory(PyObject*, PyObject* args);

}  // namespace functrans::cuda
