// Numbers of the normal distribution, the same for the same seed.
#pragma once

#include <cstdint>
#include <vector>

#include "src/core/random.h"

namespace posenc {

template <class T = double>
std::vector<T> random(std::int64_t count, unsigned seed = 1, T scale = 1) {
  detail::SplitMix64 engine(seed);
  std::vector<T> x(static_cast<std::size_t>(count));
  for (T& value : x) value = scale * static_cast<T>(detail::normal(engine));
  return x;
}

}  // namespace posenc
