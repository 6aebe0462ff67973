// Rows of a cache in floats of 8 bits, looked up in tables that lie in registers (AVX512-VBMI): a
// magnitude has 7 bits, and what stands for it is exact in bfloat16, NaN and subnormals too.
#pragma once

#include <cstdint>

#include "src/kernels/cached_rows.h"

namespace posenc::detail {

// cached_dots() and add_cached() of cached_rows.h for e4m3 and e5m2 of a width that 64 divides,
// where the processor has such a lookup. False: nothing was done.
bool dots_by_tables(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                    std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                    const CachedRows* values);
bool add_by_tables(const CachedRows& v, std::int64_t keys, std::int64_t width, const float* weights,
                   std::int64_t weights_step, std::int64_t rows, float* sums,
                   std::int64_t sums_step);

}  // namespace posenc::detail
