// Reductions of the buffers of several members, by operation and dtype.
#pragma once

#include "meeting.h"

#include <cstdint>

namespace functrans {

// (in, members, first, count, out): out[i] = in[0][first + i] op in[1][first + i] op ... for i below
// `count`, always in this order, so that all members get the same bits.
using Reduce = void (*)(const void* const*, int, std::int64_t, std::int64_t, void*);

Reduce reduce_of(Meeting::Op op, Meeting::Type type);

// Bytes of an element.
std::int64_t element_size(Meeting::Type type);

}  // namespace functrans
