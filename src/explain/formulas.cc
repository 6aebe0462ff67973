// A formula for each scheme and scaling of a group, with the numbers that hold in it. What a
// scaling leaves out for some of its settings is left out here too, so that the line and the plan
// cannot contradict each other.
#include <algorithm>
#include <string>
#include <variant>

#include "src/explain/text.h"
#include "src/explain/words.h"

namespace posenc::detail {
namespace {

// The factor on cos and sin is the plan's own, whatever made it.
std::string times_amplitude(const Rotate& rotate, const std::string& why) {
  if (rotate.amplitude == 1) return {};
  return "; cos, sin × " + (why.empty() ? "" : why + " = ") + shown(rotate.amplitude);
}

std::string with_factor(double factor) { return "s = " + shown(factor); }
std::string with_lengths(double factor, std::int64_t trained) {
  return with_factor(factor) + ", L = " + grouped(trained);
}

// s of YaRN and LongRoPE for the length that was asked.
double factor_of(const Yarn& x, std::int64_t asked) {
  const auto trained = static_cast<double>(x.original_max_position_embeddings);
  if (x.dynamic) return std::max(1.0, static_cast<double>(asked) / trained);
  return x.factor ? *x.factor
                  : static_cast<double>(x.max_position_embeddings.value_or(0)) / trained;
}
double factor_of(const LongRope& x) {
  return x.factor ? *x.factor
                  : static_cast<double>(x.max_position_embeddings.value_or(0)) /
                        static_cast<double>(x.original_max_position_embeddings);
}

struct ScalingFormula {
  const Rotate& rotate;
  const Rope& rope;
  std::int64_t asked;

  template <class S>
  std::string operator()(const S&) const {
    return std::string(S::formula);
  }
  std::string operator()(const Linear& x) const { return "f_r / " + shown(x.factor); }
  std::string operator()(const NtkAware& x) const {
    return "b′ = b·s^(d/(d−2)), f_r = b′^(−2r/d); " + with_factor(x.factor);
  }
  std::string operator()(const NtkByParts& x) const {
    return "ρ = L·f_r/2π, γ = clamp((ρ−" + shown(x.alpha) + ")/(" + shown(x.beta) + "−" +
           shown(x.alpha) + "), 0, 1), (1−γ)·f_r/s + γ·f_r; " +
           with_lengths(x.factor, x.original_max_position_embeddings);
  }
  std::string operator()(const Yarn& x) const {
    const auto end = [&](double turns, double usual, std::string_view open, std::string_view shut) {
      const std::string pair = "c(" + shown(turns == 0 ? usual : turns) + ")";
      return x.truncate ? std::string(open) + pair + std::string(shut) : pair;
    };
    const double s = factor_of(x, asked);
    return "ramp·f_r/s + (1−ramp)·f_r, ramp from 0 at pair " + end(x.beta_fast, 32, "⌊", "⌋") +
           " to 1 at " + end(x.beta_slow, 1, "⌈", "⌉") + ", c(n) = d·ln(L/2πn)/(2 ln b); " +
           with_lengths(s, x.original_max_position_embeddings) +
           times_amplitude(rotate, magnitude(x));
  }
  std::string operator()(const LongRope& x) const {
    const bool beyond = asked > x.original_max_position_embeddings;
    const double mscale = (beyond ? x.long_mscale : x.short_mscale).value_or(0);
    const std::string why = x.attention_factor ? "attention_factor"
                            : mscale != 0      ? (beyond ? "long_mscale" : "short_mscale")
                                               : "√(1 + ln s/ln L)";
    return "f_r / λ_r, λ = long if length > L else short; " +
           with_lengths(factor_of(x), x.original_max_position_embeddings) +
           times_amplitude(rotate, why);
  }
  std::string operator()(const Llama3& x) const {
    return "turns = L·f_r/2π; f_r/s below " + shown(x.low_freq_factor) + ", f_r above " +
           shown(x.high_freq_factor) + ", linear in turns between; " +
           with_lengths(x.factor, x.original_max_position_embeddings);
  }
  std::string operator()(const Proportional& x) const {
    const std::string by = x.factor == 1 ? "" : "/" + shown(x.factor);
    std::string power = "f_r = b^(−2r/d)" + by;
    if (x.partial_rotary_factor == 1) return power;
    return power + " for r < ⌊" + shown(x.partial_rotary_factor) +
           "·d/2⌋, else 0, with the exponent over all of d";
  }

 private:
  static std::string magnitude(const Yarn& x) {
    if (x.attention_factor) return "attention_factor";
    const bool pair = x.mscale.value_or(0) != 0 && x.mscale_all_dim.value_or(0) != 0;
    if (!pair) return "(0.1 ln s + 1)";
    return "(0.1·" + shown(*x.mscale) + " ln s + 1)/(0.1·" + shown(*x.mscale_all_dim) +
           " ln s + 1)";
  }
};

}  // namespace

std::vector<FormulaLine> formula_lines(const Subject& subject) {
  std::vector<FormulaLine> lines;
  if (subject.group.mixer != Mixer::attention) return lines;
  for (const Scheme& scheme : subject.group.schemes) {
    const Rope* rope = std::get_if<Rope>(&scheme);
    // Of a distance map no logit depends on i−j alone.
    const bool mapped = rope && !std::holds_alternative<NoMap>(rope->distance_map);
    lines.push_back({std::string(info(scheme).name),
                     mapped ? "pair r rotates by p′·f_r, f_r = b^(−2r/d), p′ as counted for this "
                              "query and key"
                            : std::string(info(scheme).formula)});
    const auto& rotate = subject.facts.plan.rotate;
    if (!rope || !rotate || std::holds_alternative<Unscaled>(rope->scaling)) continue;
    lines.push_back({std::string(info(rope->scaling).name),
                     std::visit(ScalingFormula{*rotate, *rope, subject.asked}, rope->scaling)});
  }
  return lines;
}

}  // namespace posenc::detail
