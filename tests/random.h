// Normal numbers for tests, the same each time.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace posenc::test {

inline std::vector<double> random(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(static_cast<std::size_t>(count));
  for (double& value : x) value = normal(engine);
  return x;
}

}  // namespace posenc::test
