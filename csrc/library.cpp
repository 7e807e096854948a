#include "library.h"

#include <string>
#include <unordered_map>

namespace functrans {
namespace {

std::unordered_map<std::string, void*>& functions() {
  static auto* table = new std::unordered_map<std::string, void*>();
  return *table;
}

}  // namespace

void register_library(const char* name, void* pointer) { functions()[name] = pointer; }

void* find_library(const char* name) {
  const auto entry = functions().find(name);
  return entry == functions().end() ? nullptr : entry->second;
}

}  // namespace functrans
