#include "cuda/timeline.h"

namespace functrans::cuda {

CUevent Timeline::take() {
  CUevent event = nullptr;
  if (events_.empty()) {
    FT_CU(EventCreate(&event, kEventDisableTiming));
  } else {
    event = events_.back();
    events_.pop_back();
  }
  return event;
}

CUevent Timeline::take_event() {
  std::lock_guard<std::mutex> lock(mutex_);
  return take();
}

void Timeline::give_event(CUevent event) {
  std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back(event);
}

void Timeline::pass(std::uint64_t position) {
  if (position > last_passed()) passed_.store(position, std::memory_order_relaxed);
}

// Drops the markers that the stream has passed.
void Timeline::poll() {
  while (!markers_.empty()) {
    const CUresult result = driver.EventQuery(markers_.front().event);
    if (result == kNotReady) return;
    check(result, "EventQuery");
    pass(markers_.front().position);
    events_.push_back(markers_.front().event);
    markers_.pop_front();
  }
}

CUevent Timeline::event_after(std::uint64_t position) {
  if (position <= last_passed()) return nullptr;
  poll();
  if (position <= last_passed()) return nullptr;
  for (const Marker& marker : markers_) {
    if (marker.position >= position) return marker.event;
  }
  // Read before the event is recorded: the event may stand behind later work, never before.
  const std::uint64_t at = now();
  const CUevent event = take();
  check(driver.EventRecord(event, stream_), "EventRecord");
  markers_.push_back({at, event});
  return event;
}

void Timeline::order(CUstream stream, std::uint64_t position) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (const CUevent event = event_after(position)) FT_CU(StreamWaitEvent(stream, event, 0));
}

void Timeline::synchronize(std::uint64_t position) {
  CUevent event;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    event = event_after(position);
  }
  // Should the event be recorded anew meanwhile, this waits longer than it must.
  if (event != nullptr) FT_CU(EventSynchronize(event));
}

bool Timeline::passed(std::uint64_t position) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (position <= last_passed()) return true;
  const CUevent event = event_after(position);
  if (event == nullptr) return true;
  poll();
  return position <= last_passed();
}

void Timeline::reached(std::uint64_t position) {
  std::lock_guard<std::mutex> lock(mutex_);
  pass(position);
}

}  // namespace functrans::cuda
