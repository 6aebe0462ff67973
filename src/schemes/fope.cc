// FoPE (2412.17739): a layer's linear maps and activations mix the wave of each pair with others
// and with their harmonics, so that a pair carries a spectrum and not one frequency. FoPE rotates
// by such a spectrum from the start,
//   cos_r(p) = Σ_u cos(p f_u)·C[u][r],  sin_r(p) = Σ_u sin(p f_u)·S[u][r],  f_u = b^(−2u/d)
// with C and S near the identity, by key head or shared, drawn at random and kept or learned.
// Frequencies that do not turn once within the trained length L, f ≤ 2π/L, were seen in part of
// their arc only and are left out, and the pairs that have no mixture do not turn.
//
// Of these pairs cosine *and sine* are 1 in the paper's code and in what Intern-S1-Pro was trained
// with (XTuner): a turn by 45° and a stretch by √2 at every position, which doubles their share of
// a logit. The paper's text means a frequency of 0, hence a sine of 0: rest_sine. The paper's code
// divides each column of C and S by its sum before use; Intern-S1-Pro's does not.
#include <cmath>
#include <numbers>
#include <string>

#include "src/core/saturating.h"
#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {
namespace {

// Frequency u alone for pair r, or every second, third one where there are fewer pairs, as the
// paper's code begins.
std::vector<double> identity(std::int64_t inputs, std::int64_t outputs) {
  std::vector<double> own(static_cast<std::size_t>(inputs * outputs));
  const std::int64_t step = outputs == 0 ? 1 : (inputs + outputs - 1) / outputs;
  for (std::int64_t r = 0; r < outputs && r * step < inputs; ++r)
    own[static_cast<std::size_t>(r * step * outputs + r)] = 1;
  return own;
}

}  // namespace

Expected<Plan> Fope::compiled(const Geometry& geometry) const {
  const std::int64_t head_dim = geometry.head_dim;
  POSENC_CHECK(detail::usable_head_dim("fope", head_dim));
  if (head_dim % 2 != 0) {
    return fail("fope", "head_dim must be even", std::to_string(head_dim),
                "every channel needs a partner");
  }
  const std::int64_t pairs = head_dim / 2;
  std::vector<double> frequency = detail::geometric_frequencies(rope_theta, head_dim, pairs);
  const double slowest = 2 * std::numbers::pi / static_cast<double>(max_position_embeddings);
  std::int64_t inputs = 0;
  while (inputs < pairs && frequency[static_cast<std::size_t>(inputs)] > slowest) ++inputs;
  if (num_inv_freq) inputs = std::min(*num_inv_freq, pairs);
  const std::int64_t outputs = mixed_pairs.value_or(inputs);
  if (outputs > pairs) {
    return fail("fope", "mixed_pairs must be the " + std::to_string(pairs) + " pairs or fewer",
                std::to_string(outputs), "a head of " + std::to_string(head_dim) + " has no more");
  }
  // What does not turn has the frequency 0, for whoever reads frequencies alone.
  std::fill(frequency.begin() + inputs, frequency.end(), 0.0);

  const std::int64_t size = inputs * outputs;
  const std::int64_t kv_heads = geometry.kv_heads > 0 ? geometry.kv_heads : geometry.heads;
  Mix mix{.inputs = inputs, .outputs = outputs, .rest_sine = rest_sine};
  for (const auto& [what, given] : {std::pair{"cos_coef", &cos_coef}, {"sin_coef", &sin_coef}}) {
    const auto count = static_cast<std::int64_t>(given->size());
    if (count == 0 || count == size) continue;
    if (count == detail::product(kv_heads, size)) {
      mix.heads = kv_heads;
      continue;
    }
    return fail("fope",
                std::string(what) + " must be [frequency][pair] or [kv_head][frequency][pair] of " +
                    std::to_string(inputs) + " frequencies, " + std::to_string(outputs) +
                    " pairs and " + std::to_string(kv_heads) + " key heads",
                std::to_string(count) + " numbers",
                "check max_position_embeddings, which says how many frequencies there are");
  }
  const auto of_heads = [&](const std::vector<double>& given) {
    std::vector<double> all = given.empty() ? identity(inputs, outputs) : given;
    if (std::ssize(all) != size) return all;
    const std::vector<double> one = all;
    for (std::int64_t head = 1; head < mix.heads; ++head)
      all.insert(all.end(), one.begin(), one.end());
    return all;
  };
  mix.cosine = of_heads(cos_coef);
  mix.sine = of_heads(sin_coef);
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = head_dim},
                       .frequencies = {.radians = std::move(frequency)},
                       .kind = std::move(mix)};
  return plan;
}

}  // namespace posenc
