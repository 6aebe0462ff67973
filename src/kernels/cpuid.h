// What an x86 processor says of itself, asked of it: the runtimes that compilers bring do not all
// know it (zig's).
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

namespace posenc::detail {

// What a leaf of CPUID says; zeros where there is none.
struct CpuidLeaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
  explicit CpuidLeaf(unsigned leaf, unsigned part = 0) {
    if (__get_cpuid_count(leaf, part, &a, &b, &c, &d) == 0) a = b = c = d = 0;
  }
};

}  // namespace posenc::detail
#endif
