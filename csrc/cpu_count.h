// How many CPUs this process may use.
#pragma once

namespace functrans {

// By affinity and by the quotas of cgroups, at least 1 and at most `most`.
int available_cpus(int most) noexcept;

}  // namespace functrans
