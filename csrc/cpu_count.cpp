#include "cpu_count.h"

#include <algorithm>
#include <cinttypes>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <sched.h>
#include <unistd.h>

namespace functrans {
namespace {

constexpr int kNoQuota = INT_MAX;

// CPUs that a cgroup's quota pays for, rounded up; kNoQuota where it sets none.
int quota_of(const char* directory) {
  char path[PATH_MAX + 32];
  std::snprintf(path, sizeof path, "%s/cpu.max", directory);
  std::int64_t quota = -1;
  std::int64_t period = -1;
  if (std::FILE* file = std::fopen(path, "re")) {  // version 2: "max 100000" or "150000 100000"
    if (std::fscanf(file, "%" SCNd64 " %" SCNd64, &quota, &period) != 2) quota = -1;
    std::fclose(file);
  } else {
    const char* names[] = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
    std::int64_t* values[] = {&quota, &period};
    for (int i = 0; i < 2; ++i) {
      std::snprintf(path, sizeof path, "%s/%s", directory, names[i]);
      file = std::fopen(path, "re");
      if (file == nullptr) return kNoQuota;
      if (std::fscanf(file, "%" SCNd64, values[i]) != 1) quota = -1;
      std::fclose(file);
    }
  }
  if (quota <= 0 || period <= 0) return kNoQuota;
  return static_cast<int>(std::min<std::int64_t>((quota + period - 1) / period, kNoQuota));
}

// The least quota on the way from this process's cgroup to the root.
int cgroup_quota() {
  int least = std::min(quota_of("/sys/fs/cgroup"), quota_of("/sys/fs/cgroup/cpu"));
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (file == nullptr) return least;
  char line[PATH_MAX];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    line[std::strcspn(line, "\n")] = 0;
    char* controllers = std::strchr(line, ':');
    char* path = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (path == nullptr) continue;
    *path++ = 0;
    const bool unified = controllers[1] == 0;
    if (!unified && std::strstr(controllers + 1, "cpu") == nullptr) continue;
    while (char* slash = std::strrchr(path, '/')) {
      if (slash[1] != 0) {
        char directory[PATH_MAX + 64];
        std::snprintf(directory, sizeof directory, "/sys/fs/cgroup%s%s", unified ? "" : "/cpu",
                      path);
        least = std::min(least, quota_of(directory));
      }
      *slash = 0;
    }
  }
  std::fclose(file);
  return least;
}

}  // namespace

int available_cpus(int most) noexcept {
  int cpus = 0;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
  if (cpus == 0) cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // more than 1024 CPUs
  return std::clamp(std::min(cpus, cgroup_quota()), 1, most);
}

}  // namespace functrans
