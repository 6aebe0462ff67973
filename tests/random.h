// Numbers of the normal distribution, the same for the same seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace posenc {

template <class T = double>
std::vector<T> random(std::int64_t count, unsigned seed = 1, T scale = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<T> normal(0, scale);
  std::vector<T> x(static_cast<std::size_t>(count));
  for (T& value : x) value = normal(engine);
  return x;
}

}  // namespace posenc
