// Random numbers that are the same for the same seed with every standard library, whose own
// distributions differ.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace posenc::detail {

// splitmix64 (Steele, Lea and Flood 2014, doi.org/10.1145/2660193.2660195): 64 good bits from any
// seed.
class SplitMix64 {
 public:
  using result_type = std::uint64_t;

  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() {
    std::uint64_t z = state_ += step;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  // As if it had been called `count` times.
  void skip(std::uint64_t count) { state_ += count * step; }

 private:
  static constexpr std::uint64_t step = 0x9E3779B97F4A7C15;
  std::uint64_t state_;
};

// In (0, 1), of the upper 53 bits of an engine's 64.
template <class Engine>
double uniform(Engine& engine) {
  static_assert(Engine::max() == std::numeric_limits<std::uint64_t>::max());
  return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53;
}

// Of mean 0 and deviation 1 (Box and Muller 1958); the second number of each pair is dropped.
template <class Engine>
double normal(Engine& engine) {
  const double radius = std::sqrt(-2 * std::log(uniform(engine)));
  return radius * std::cos(2 * std::numbers::pi * uniform(engine));
}

}  // namespace posenc::detail
