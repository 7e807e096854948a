#include "cuda/communication.h"

#include "cuda/nccl.h"

namespace functrans::cuda {

CommunicationLane::~CommunicationLane() {
  for (CUevent event : events_) device_.timeline.give_event(event);
}

CUevent CommunicationLane::take() {
  events_.push_back(device_.timeline.take_event());
  return events_.back();
}

void CommunicationLane::start(const Step& step, const CUdeviceptr* bases) {
  std::vector<CollectiveCall> calls;
  for (const CollectivePart& one : step.collectives) {
    calls.push_back({one.numbers, one.source.in(bases), one.target.in(bases)});
  }
  const CUstream stream = device_.communication();
  const CUevent ready = take(), done = take();
  FT_CU(EventRecord(ready, device_.compute));
  FT_CU(StreamWaitEvent(stream, ready, 0));
  give_collectives(device_, calls, stream);
  FT_CU(EventRecord(done, stream));
  started_.push_back({step.count, done});
}

void CommunicationLane::wait(std::int64_t number) {
  for (const Started& one : started_) {
    if (one.number == number) FT_CU(StreamWaitEvent(device_.compute, one.event, 0));
  }
}

void CommunicationLane::wait_for_all() {
  if (started_.empty()) return;
  FT_CU(StreamWaitEvent(device_.compute, started_.back().event, 0));
  started_.clear();
}

}  // namespace functrans::cuda
