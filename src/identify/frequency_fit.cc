// Each scaling is a hypothesis that is compiled as the library compiles it, and compared with what
// was measured. Of llama3 and YaRN the fastest pairs tell the base, the slowest the factor, and
// those between the trained length.
#include "src/identify/frequency_fit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "src/identify/dump.h"

namespace posenc::detail {
namespace {

double exponent(const Measured& m, std::int64_t dim) {
  return -2 * static_cast<double>(m.pair) / static_cast<double>(dim);
}

// A base as people choose them, if one lies within reach: the one of fewest digits.
double rounded(double base, double share) {
  for (int digits = 1; digits <= 6; ++digits) {
    const double unit = std::pow(10, std::floor(std::log10(base)) - digits + 1);
    const double near = std::round(base / unit) * unit;
    if (std::abs(near - base) <= share * base) return near;
  }
  return base;
}

class Fits {
 public:
  Fits(const std::vector<Measured>& measured, std::int64_t dim, DType kept)
      : measured_(measured), dim_(dim), kept_(kept) {}

  void add(double base, const Scaling& scaling) {
    const Rope rope{.rope_theta = base, .rotary_dim = dim_, .scaling = scaling};
    const auto made = rope_frequencies<double>(rope, {.head_dim = dim_});
    if (!made) return;
    // A scaling that changes nothing here is none.
    if (!std::holds_alternative<Unscaled>(scaling)) {
      const auto plain =
          rope_frequencies<double>({.rope_theta = base, .rotary_dim = dim_}, {.head_dim = dim_});
      if (plain && plain->frequency == made->frequency) return;
    }
    double sum = 0;
    for (const Measured& m : measured_) {
      const double frequency = kept_as(kept_, made->frequency[static_cast<std::size_t>(m.pair)]);
      const double off = (frequency - m.frequency) / m.resolution;
      sum += off * off;
    }
    const FrequencyFit fit{base, scaling, kept_,
                           std::sqrt(sum / static_cast<double>(measured_.size()))};
    for (FrequencyFit& old : fits_) {
      if (old.scaling.index() != scaling.index()) continue;
      if (fit.misfit < old.misfit) old = fit;
      return;
    }
    fits_.push_back(fit);
  }

  std::vector<FrequencyFit> sorted() && {
    std::ranges::stable_sort(fits_, {}, &FrequencyFit::misfit);
    // The plainest of those that explain what was measured.
    const auto plain = std::ranges::find_if(fits_, [](const FrequencyFit& fit) {
      return fit.misfit < 3 && std::holds_alternative<Unscaled>(fit.scaling);
    });
    if (plain != fits_.end()) std::rotate(fits_.begin(), plain, plain + 1);
    return std::move(fits_);
  }

 private:
  const std::vector<Measured>& measured_;
  const std::int64_t dim_;
  const DType kept_;
  std::vector<FrequencyFit> fits_;
};

}  // namespace

std::size_t significant_digits(double number) {
  std::size_t count = 1;
  while (count < 17) {
    const double unit =
        std::pow(10, std::floor(std::log10(number)) - static_cast<double>(count) + 1);
    if (std::abs(std::round(number / unit) * unit - number) < 1e-9 * number) break;
    ++count;
  }
  return count;
}

std::optional<double> base_of(const std::vector<Measured>& measured, std::int64_t dim, double share,
                              DType kept) {
  double sum = 0, weights = 0;
  for (const Measured& m : measured) {
    const double e = exponent(m, dim);
    if (e == 0) continue;
    const double blur = m.resolution / m.frequency;  // of the logarithm
    const double weight = e * e / (blur * blur);
    sum += weight * std::log(m.frequency / share) / e;
    weights += weight;
  }
  if (weights == 0) return {};
  const double log_base = sum / weights;
  if (log_base <= 0 || log_base > 60) return {};
  const double least = kept == DType::bf16 ? 0.02 : kept == DType::f16 ? 0.004 : 1e-6;
  return rounded(std::exp(log_base), std::max(6 / std::sqrt(weights), least));
}

std::vector<FrequencyFit> fit_frequencies(const std::vector<Measured>& measured,
                                          std::int64_t rotary_dim, DType kept) {
  if (measured.size() < 2) return {};
  Fits fits(measured, rotary_dim, kept);
  if (const auto base = base_of(measured, rotary_dim, 1, kept)) fits.add(*base, Unscaled{});
  // Linear: even pair 0 is slower.
  const Measured& fastest = measured.front();
  if (fastest.pair == 0 && fastest.frequency < 0.99) {
    const double factor =
        rounded(1 / fastest.frequency, 4 * fastest.resolution / fastest.frequency);
    if (const auto base = base_of(measured, rotary_dim, 1 / factor, kept))
      fits.add(*base, Linear{.factor = factor});
  }
  // The base by the pairs that no scaling by parts touches, as far as it can be known so.
  std::size_t last = 0;
  for (const std::size_t part : {8, 4, 3}) {
    const std::size_t fast = std::max<std::size_t>(measured.size() / part, 2);
    if (fast == std::exchange(last, fast)) continue;
    const std::vector<Measured> first(measured.begin(),
                                      measured.begin() + static_cast<std::ptrdiff_t>(fast));
    const auto base = base_of(first, rotary_dim, 1, kept);
    if (!base) continue;
    double least = 1;
    for (const Measured& m : measured)
      least = std::min(least, m.frequency / std::pow(*base, exponent(m, rotary_dim)));
    std::vector<double> factors = {2, 4, 8, 16, 32, 40, 64};
    if (least < 0.99) factors.push_back(rounded(1 / least, 0.02));
    for (const double factor : factors) {
      for (const std::int64_t trained :
           {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144}) {
        fits.add(*base, Llama3{.factor = factor, .original_max_position_embeddings = trained});
        for (const bool truncate : {true, false})
          fits.add(*base, Yarn{.factor = factor,
                               .original_max_position_embeddings = trained,
                               .truncate = truncate});
      }
    }
  }
  return std::move(fits).sorted();
}

}  // namespace posenc::detail
