// Random numbers that are the same everywhere: the standard library's own distributions differ by library.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "posenc/tools.h"

namespace posenc {
namespace {

constexpr std::uint64_t step = 0x9E3779B97F4A7C15;

// Number `index` of splitmix64 (Steele et al. 2014), within (0, 1).
double uniform(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * step;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

std::vector<double> normals(std::uint64_t seed, std::int64_t count, std::int64_t first) {
  std::vector<double> out(static_cast<std::size_t>(count));
  auto index = 2 * static_cast<std::uint64_t>(first);
  for (double& number : out) {
    const double radius = std::sqrt(-2 * std::log(uniform(seed, index)));
    number = radius * std::cos(2 * std::numbers::pi * uniform(seed, index + 1));
    index += 2;
  }
  return out;
}

}  // namespace posenc
