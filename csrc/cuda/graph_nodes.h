// Steps as the nodes of a CUDA graph, each after the one before; loops are conditional nodes.
#pragma once

#include "cuda/driver.h"
#include "cuda/steps.h"

#include <vector>

namespace functrans::cuda {

// What the nodes of a call are made of.
struct NodeSource {
  const Kernel* kernels;
  const CUdeviceptr* bases;
  CUfunction decide;  // null where a graph cannot have loops
};

// The kernel that sets conditions of a graph by the flags of a loop, as PTX.
Kernel decide_kernel();
// Whether the driver has graphs with loops.
bool graphs_have_loops() noexcept;
// Whether a graph can have the step, with loops or without.
bool can_be_node(const Step& step, bool loops);

// A graph that gets nodes.
class Chain {
 public:
  Chain(CUgraph graph, const NodeSource& source) : graph_(graph), source_(source) {}
  // The node of a step, after the last one; of a loop its last node.
  CUgraphNode add(Step& step);
  void add_all(std::vector<Step>& steps);

 private:
  struct Condition;
  void add_kernel(Step& step);
  void add_until(Step& loop);
  Condition condition(unsigned preset);
  // A graph that runs if, or while, the condition holds.
  Chain body(const Condition& condition, int type);
  void decide(const CUdeviceptr* first, const CUdeviceptr* second, const Condition* going,
              const Condition* again, const Condition* first_end, const Condition* second_end);
  const CUgraphNode* before() const { return last_ == nullptr ? nullptr : &last_; }
  std::size_t count() const { return last_ == nullptr ? 0 : 1; }

  CUgraph graph_;
  NodeSource source_;
  CUgraphNode last_ = nullptr;
  const Kernel* last_kernel_ = nullptr;  // of the last node, if it is a launch
};

}  // namespace functrans::cuda
