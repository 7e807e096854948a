#include "cuda/loops.h"

#include "cuda/libraries.h"
#include "cuda/transfer.h"

namespace functrans::cuda {
namespace {

void enqueue_all(Device& device, std::vector<Step>& steps, const Kernel* kernels,
                 const CUdeviceptr* bases, const RunHost& run_host) {
  for (Step& step : steps) {
    switch (step.kind) {
      case StepKind::library: run_library(device, step, bases); break;
      case StepKind::host: run_host(step); break;
      case StepKind::rounds:
      case StepKind::until: run_loop(device, step, kernels, bases, run_host); break;
      default: enqueue(step, kernels, bases, device.compute);
    }
  }
}

void run_rounds(Device& device, Step& loop, const Kernel* kernels, const CUdeviceptr* bases,
                const RunHost& run_host) {
  std::vector<Step>& steps = loop.parts[0];
  struct Back {  // to where the first round is
    std::vector<Step>& steps;
    std::int64_t done = 0;
    ~Back() {
      for (Step& step : steps) step.go_on(-done);
    }
  } back{steps};
  for (; back.done < loop.count; ++back.done) {
    enqueue_all(device, steps, kernels, bases, run_host);
    for (Step& step : steps) step.go_on(1);
  }
}

// An event of the timeline's for the length of a loop.
struct Passing {
  explicit Passing(Device& d) : device(d), event(d.timeline.take_event()) {}
  ~Passing() { device.timeline.give_event(event); }
  Device& device;
  CUevent event;
};

void run_until(Device& device, Step& loop, const Kernel* kernels, const CUdeviceptr* bases,
               const RunHost& run_host) {
  const Passing passing(device);
  for (std::size_t side = 0;; side ^= 1) {
    const CUdeviceptr flag = loop.places[side].in(bases);
    enqueue_all(device, loop.parts[3 * side], kernels, bases, run_host);
    FT_CU(EventRecord(passing.event, device.compute));
    std::vector<Step>& iteration = loop.parts[3 * side + 1];
    if (loop.ahead) enqueue_all(device, iteration, kernels, bases, run_host);
    FT_CU(StreamWaitEvent(device.copy, passing.event, 0));
    unsigned char going = 0;
    read_copied(device, &going, flag, sizeof going);
    loop.turns += going != 0;
    if (!going) {
      enqueue_all(device, loop.parts[3 * side + 2], kernels, bases, run_host);
      return;
    }
    if (!loop.ahead) enqueue_all(device, iteration, kernels, bases, run_host);
  }
}

}  // namespace

void run_loop(Device& device, Step& step, const Kernel* kernels, const CUdeviceptr* bases,
              const RunHost& run_host) {
  if (step.kind == StepKind::rounds) {
    run_rounds(device, step, kernels, bases, run_host);
  } else {
    run_until(device, step, kernels, bases, run_host);
  }
}

}  // namespace functrans::cuda
