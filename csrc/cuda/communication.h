// The collectives of a running program that are given to a stream of their own, beside its kernels.
#pragma once

#include "cuda/device.h"
#include "cuda/steps.h"

#include <cstdint>
#include <vector>

namespace functrans::cuda {

// Of one call; the context of the device is current. Throws Failure.
class CommunicationLane {
 public:
  explicit CommunicationLane(Device& device) : device_(device) {}
  ~CommunicationLane();
  CommunicationLane(const CommunicationLane&) = delete;
  CommunicationLane& operator=(const CommunicationLane&) = delete;

  // Gives the collectives of a step to the stream, behind what was computed so far.
  void start(const Step& step, const CUdeviceptr* bases);
  // What is computed from now on comes behind the collective of this number, and those before.
  void wait(std::int64_t number);
  // ... behind all of them.
  void wait_for_all();

 private:
  struct Started {
    std::int64_t number;
    CUevent event;
  };
  Device& device_;
  std::vector<Started> started_;
  std::vector<CUevent> events_;  // to be given back
  CUevent take();
};

}  // namespace functrans::cuda
