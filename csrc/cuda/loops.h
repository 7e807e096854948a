// Loops that the host drives: steps over and over, a number of rounds or while a flag is set.
#pragma once

#include "cuda/device.h"
#include "cuda/steps.h"

#include <functional>

namespace functrans::cuda {

// Has the host compute a step. Throws what ends the call.
using RunHost = std::function<void(const Step&)>;

// Gives the steps of a loop to the compute stream; without the GIL. Throws Failure.
//
// `rounds`: parts[0], count times, of launches, copies and library calls. `until`: two sides take
// turns, each with a flag (places), the steps that set it, those of an iteration from this side to
// the other, and those of the end on this side. With `ahead` an iteration is under way before its
// flag is known: the side that it reads is whole, and is the result where it should not have run.
// Without it, parts may have loops and steps of the host.
void run_loop(Device& device, Step& step, const Kernel* kernels, const CUdeviceptr* bases,
              const RunHost& run_host);

}  // namespace functrans::cuda
