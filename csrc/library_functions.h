// The library functions of csrc/lib_*.cpp, entered into the registry of library.h.
#pragma once

namespace functrans {

void register_library_functions();  // at import, under the GIL, with NumPy's API loaded

}  // namespace functrans
