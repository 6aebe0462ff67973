// Dumps of engines whose convention is known.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/identify.h"
#include "tests/random.h"

namespace posenc {

// Vectors before and after an engine's rotation.
struct Shown {
  DType dtype = DType::f32;
  std::int64_t heads = 4, tokens = 128, dim = 64;
  std::vector<double> before_memory = {}, after_memory = {};
  Tensor before = {}, after = {};

  Tensor view(std::vector<double>& memory) const {
    memory.resize(static_cast<std::size_t>(heads * tokens * dim));
    return Tensor::dense(memory.data(), dtype, {heads, tokens, dim});
  }
  // `repeated`: every token has the first one's vector.
  Shown& fill(unsigned seed, bool repeated = false) {
    before = view(before_memory), after = view(after_memory);
    const std::vector<double> numbers = random(heads * tokens * dim, seed);
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t c = 0; c < dim; ++c)
          before.set(
              before.offset(h, t, c),
              numbers[static_cast<std::size_t>((h * tokens + (repeated ? 0 : t)) * dim + c)]);
    return *this;
  }
  Shown& rotate_by(const Rope& rope, std::int64_t first = 0) {
    const auto plan = compile(Scheme(rope), {.heads = heads, .kv_heads = heads, .head_dim = dim});
    EXPECT_TRUE(plan) << plan.error().message();
    const auto done = rotate(*plan, before, Positions::range(first, tokens), Side::key, after);
    EXPECT_TRUE(done) << done.error().message();
    return *this;
  }
  // Once more, by the same positions.
  Shown& rotate_again(const Rope& rope) {
    const auto plan = compile(Scheme(rope), {.heads = heads, .kv_heads = heads, .head_dim = dim});
    EXPECT_TRUE(plan && rotate(*plan, after, Positions::range(0, tokens), Side::key, after));
    return *this;
  }
  // By angles of halves that were formed in float16.
  Shown& rotate_in_float16(double base, std::int64_t first) {
    const auto narrow = [](double x) {
      return half_to_float(float_to_half(static_cast<float>(x)));
    };
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t r = 0; r < dim / 2; ++r) {
          const double f = std::pow(base, -2.0 * static_cast<double>(r) / static_cast<double>(dim)),
                       angle = static_cast<double>(narrow(static_cast<double>(
                           narrow(static_cast<double>(first + t)) * narrow(f)))),
                       x = before.get(before.offset(h, t, r)),
                       y = before.get(before.offset(h, t, r + dim / 2));
          after.set(after.offset(h, t, r), x * std::cos(angle) - y * std::sin(angle));
          after.set(after.offset(h, t, r + dim / 2), y * std::cos(angle) + x * std::sin(angle));
        }
    return *this;
  }
  // By the index of the head in place of the position.
  Shown& rotate_heads() {
    const auto swapped = [](const Tensor& x) { return x.swapped(0, 1); };
    const auto plan = compile(Scheme(Rope{}), {.head_dim = dim});
    EXPECT_TRUE(plan && rotate(*plan, swapped(before), Positions::range(0, heads), Side::key,
                               swapped(after)));
    return *this;
  }
  Identified identified(std::int64_t first = 0) const {
    return found({.after = after, .before = before, .positions = Positions::range(first, tokens)});
  }
  Identified from_repeated() const {
    return found({.after = after, .positions = Positions::range(0, tokens), .repeated = true});
  }

 private:
  static Identified found(const RotationDump& dump) {
    const auto result = identify(dump);
    EXPECT_TRUE(result) << result.error().message();
    return result.value_or(Identified{});
  }
};

inline double base_of(const Identified& found) {
  return found.frequencies ? found.frequencies->base : 0;
}
inline std::string scaling_of(const Identified& found) {
  return found.frequencies ? std::string(info(found.frequencies->scaling).name) : "";
}

}  // namespace posenc
