// What training changes: lists of numbers with their gradients, and AdamW.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::lab {

// The same numbers on every machine for a seed, which std::normal_distribution does not promise.
class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }  // [0, 1)
  double normal();
  std::int64_t below(std::int64_t end) {  // of [0, end), end far below 2^53
    return static_cast<std::int64_t>(uniform() * static_cast<double>(end));
  }

 private:
  std::mt19937_64 bits_;
};

struct Parameter {
  std::string name;
  std::vector<float> value, gradient, mean, square;  // of the gradient: what Adam remembers
  bool decays = false;

  float* data() { return value.data(); }
  void add_gradient(const std::vector<float>& more);
};

class Parameters {
 public:
  explicit Parameters(std::uint64_t seed) : seed_(seed) {}

  // Normal numbers with this standard deviation, or all `middle` where it is 0. They depend on the
  // seed and the name alone, so that models with other parameters besides share them. The reference
  // stays good.
  Parameter& add(std::string name, std::int64_t size, double deviation, double middle = 0);
  std::deque<Parameter>& all() { return all_; }
  std::int64_t size() const;

  // The numbers and memories of another list of the same parameters.
  void restore(const Parameters& other);
  void clear_gradients();
  // AdamW: betas 0.9 and 0.95, weight decay 0.1 of matrices, gradients cut to a norm of 1 in all.
  void step(double rate);

 private:
  std::uint64_t seed_;
  std::int64_t steps_ = 0;
  std::deque<Parameter> all_;
};

}  // namespace posenc::lab
