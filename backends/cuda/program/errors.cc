// What each way to form an angle makes of a cosine, by position: turns, a product in double, and
// two engines' floats.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>

#include "backends/cuda/program/bench.h"
#include "backends/cuda/turns.h"

namespace posenc::cuda {
namespace {

constexpr int pairs = 64;
constexpr double theta = 1e4;

using Wide = __float128;
__extension__ typedef __int128 Int128;
// 2π as a sum of doubles that do not overlap.
constexpr Wide full_turn =
    static_cast<Wide>(0x1.921fb54442d18p+2) + static_cast<Wide>(0x1.1a62633145c07p-52);

double exact_cosine(std::int64_t position, double frequency) {
  const Wide turns = static_cast<Wide>(position) * static_cast<Wide>(frequency) / full_turn;
  const Wide part = turns - static_cast<Wide>(static_cast<Int128>(turns));
  return static_cast<double>(
      std::cos(2 * std::numbers::pi_v<long double> * static_cast<long double>(part)));
}

// Of float frequencies by float positions: 1/θ^(2i/d) of transformers, and a power by exp2 and
// log2, as a kernel without a table has it at best.
float hugging_face(int pair) {
  return 1.0f / std::pow(static_cast<float>(theta), static_cast<float>(2 * pair) / 128.0f);
}
float on_the_fly(int pair) {
  return std::exp2(static_cast<float>(2 * pair) / 128.0f *
                   std::log2(1.0f / static_cast<float>(theta)));
}
double float_cosine(std::int64_t position, float frequency) {
  return std::cos(static_cast<double>(static_cast<float>(position) * frequency));
}

}  // namespace

void print_errors() {
  std::puts(
      "position,turns in float,turns in double,product in double,Hugging Face's floats,floats on "
      "the fly");
  for (int half_octave = 8; half_octave <= 80; ++half_octave) {
    const auto last = static_cast<std::int64_t>(std::exp2(half_octave / 2.0));
    double worst[5] = {};
    for (std::int64_t p = last; p > last - 40 && p > 0; --p)
      for (int pair = 0; pair < pairs; ++pair) {
        const double frequency = std::pow(theta, -pair / 64.0), exact = exact_cosine(p, frequency);
        const std::uint64_t phase = phase_of(p, posenc::turns_of(frequency));
        const double found[5] = {
            static_cast<double>(cos_sin<float>(phase).cos), cos_sin<double>(phase).cos,
            std::cos(static_cast<double>(p) * frequency), float_cosine(p, hugging_face(pair)),
            float_cosine(p, on_the_fly(pair))};
        for (int i = 0; i < 5; ++i) worst[i] = std::max(worst[i], std::abs(found[i] - exact));
      }
    std::printf("%lld", static_cast<long long>(last));
    for (const double error : worst) std::printf(",%.3g", error);
    std::puts("");
  }
}

}  // namespace posenc::cuda
