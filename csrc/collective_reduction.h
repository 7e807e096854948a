// Reductions of the buffers of several members, by operation and dtype.
#pragma once

#include "communicator.h"

#include <cstdint>

namespace functrans {

// (in, members, first, count, out): out[i] = in[0][first + i] op in[1][first + i] op ... for i below
// `count`, always in this order, so that all members get the same bits.
using Reduce = void (*)(const void* const*, int, std::int64_t, std::int64_t, void*);

Reduce reduce_of(Communicator::Op op, Communicator::Type type);

// Bytes of an element.
std::int64_t element_size(Communicator::Type type);

}  // namespace functrans
