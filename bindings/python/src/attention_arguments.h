// What attention and the cache take alike.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/attention.h"

namespace posenc::python {

namespace nb = nanobind;

// The keywords that make a mask, but for keep and blocks.
struct MaskWords {
  bool causal;
  std::int64_t window, chunk, prefix;
  Mask mask() const {
    return {.causal = causal, .window = window, .chunk = chunk, .prefix = prefix};
  }
};

// bool or uint8 [batch, keys], copied row by row.
std::vector<std::uint8_t> bytes_of(nb::handle given, std::string_view where);

// Ids of the keys that each query may see, [batch, queries, count] of any integers or [queries,
// count] for all, copied; the mask then points to them.
std::vector<std::int32_t> lists_of(nb::handle given, std::int64_t batch, std::int64_t queries,
                                   const char* where, Mask& mask);

}  // namespace posenc::python
