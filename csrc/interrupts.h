// Ctrl-C, and whatever other signals have handlers in Python, while a program runs without Python.
#pragma once

#include <cstdint>

namespace functrans {

struct CallContext;

// Milliseconds of a clock that is read in 5 ns and moves every 1 to 4 ms.
std::int64_t coarse_milliseconds() noexcept;

// Whether a call is to end because the handler of a signal raised; the exception is set. Any thread
// of the call may ask. Handlers are run here, at most every 100 ms, by the thread that made the
// call where it is Python's main thread: no other runs handlers.
int call_stops(void* context) noexcept;

// The call that this thread runs without the GIL: library functions ask for it. Null elsewhere.
extern thread_local CallContext* running_call;

}  // namespace functrans
