// Functions of csrc/ that generated programs call, by name.
#pragma once

namespace functrans {

// Later registrations of a name replace earlier ones. At import, under the GIL.
void register_library(const char* name, void* pointer);
void* find_library(const char* name);  // null when there is none

}  // namespace functrans
