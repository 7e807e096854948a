// What a jitted function runs for one signature.
#pragma once

#include "common.h"
#include "shared.h"
#include "signature.h"
#include "structure.h"

#include <memory>
#include <vector>

namespace functrans {

// One compiled specialisation. Shared between the cache and the calls that run it, so that a call
// survives a cache that is cleared beneath it.
struct Entry : Shared {
  SignatureKey key;
  Ref program;
  std::vector<std::size_t> forwarded;  // which leaf each result is, where all are leaves; or empty
  Ref unflatten;                         // either this callable
  std::unique_ptr<Structure> structure;  // or this
  std::vector<bool> weak;
  std::vector<Ref> bound;  // inputs of an exact Program before the leaves

  explicit Entry(const SignatureKey& k) : key(k) {}
};
using EntryPtr = SharedPtr<Entry>;

// Runs an entry on the leaves of a call, which it may take out of the signature.
PyObject* run_entry(const Entry& entry, Signature& signature);

// Sets what an entry runs, and of which leaves its results are Arrays on the same memory: a tuple,
// empty where some are computed. Weak flags and bound inputs are there. False with an exception set.
bool set_program(Entry& entry, PyObject* program, PyObject* forwarded);

}  // namespace functrans
