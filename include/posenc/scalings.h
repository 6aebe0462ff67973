// Scalings of RoPE: each maps the base frequencies to what the model was taught to use. A scaling
// is a struct here, a word in the list at the end, and one function in src/scalings/<name>.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "posenc/error.h"
#include "posenc/fields.h"
#include "posenc/plan.h"

namespace [[gnu::visibility("default")]] posenc {

// What a scaling starts from. Real is double, float (Hugging Face's arithmetic) or long double.
template <class Real>
struct RopeBase {
  Real theta = 0;                    // base of the geometric series, > 1
  std::int64_t dim = 0;              // denominator of the exponent: frequency r = theta^(−2r/dim)
  std::int64_t length = 0;           // length to compile for, 0: as constructed
  std::vector<Real> frequency = {};  // [pairs], unscaled
  std::int64_t pairs() const { return (dim + 1) / 2; }
};

// What a scaling makes of the base: frequencies, amplitude, logit scale.
template <class Real>
struct Scaled {
  std::vector<Real> frequency = {};   // [pairs], radians per position
  Real amplitude = 1;                 // multiplies cos and sin
  Real logit_multiplier = 1;          // multiplies the logits' scale
  std::optional<Lengths> valid = {};  // absent: any length
};

// f_r = b^(−2r/d), nothing more.
struct Unscaled {
  static constexpr std::string_view name = "default", aliases = "none unscaled",
                                    title = "no scaling", formula = "f_r = b^(−2r/d)",
                                    paper = "2104.09864";
  static constexpr auto fields() { return std::tuple{}; }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const Unscaled&) const = default;
};

struct Linear {
  double factor = 1;

  static constexpr std::string_view name = "linear", aliases = "pi",
                                    title = "position interpolation (PI)", formula = "f_r / s",
                                    paper = "2306.15595";
  static constexpr auto fields() {
    return std::tuple{Field{"factor", &Linear::factor, "s: new length over trained length",
                            positive, "×", "", true}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const Linear&) const = default;
};

struct NtkAware {
  double factor = 1;

  static constexpr std::string_view name = "ntk", aliases = "ntk-aware ntk_aware ntk-alpha",
                                    title = "NTK-aware scaling",
                                    formula = "b′ = b·s^(d/(d−2)), f_r = b′^(−2r/d)",
                                    paper = "2309.00071";
  static constexpr auto fields() {
    return std::tuple{Field{"factor", &NtkAware::factor,
                            "s: stretch of the slowest pair (HunYuan's alpha)", positive, "×",
                            "alpha", true}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const NtkAware&) const = default;
};

struct DynamicNtk {
  double factor = 1;
  std::int64_t max_position_embeddings = 0;

  static constexpr std::string_view name = "dynamic", aliases = "dynamic-ntk dynamic_ntk",
                                    title = "dynamic NTK scaling",
                                    formula =
                                        "b′ = b·(s·l/M − s + 1)^(d/(d−2)), l = max(length, M)",
                                    paper = "2309.00071";
  static constexpr auto fields() {
    return std::tuple{
        Field{"factor", &DynamicNtk::factor, "s: how steeply the base grows past M", positive, "×",
              "", true},
        Field{"max_position_embeddings", &DynamicNtk::max_position_embeddings,
              "M: length up to which nothing changes", at_least_one, "tokens", "", true}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const DynamicNtk&) const = default;
};

struct NtkByParts {
  double factor = 1;
  std::int64_t original_max_position_embeddings = 0;
  double alpha = 1, beta = 32;

  static constexpr std::string_view
      name = "ntk_by_parts",
      aliases = "ntk-by-parts by-parts by_parts", title = "NTK-by-parts, as the paper prints it",
      formula = "ρ = L·f_r/2π, γ = clamp((ρ−α)/(β−α), 0, 1), (1−γ)·f_r/s + γ·f_r",
      paper = "2309.00071";
  static constexpr auto fields() {
    return std::tuple{
        Field{"factor", &NtkByParts::factor, "s: new length over trained length", positive, "×", "",
              true},
        Field{"original_max_position_embeddings", &NtkByParts::original_max_position_embeddings,
              "L: trained length", at_least_one, "tokens", "original_length", true},
        Field{"alpha", &NtkByParts::alpha, "pairs with fewer turns in L are fully interpolated",
              not_negative, "turns"},
        Field{"beta", &NtkByParts::beta, "pairs with more turns in L are left alone", positive,
              "turns"}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const NtkByParts&) const = default;
};

struct Yarn {
  std::optional<double> factor = {};
  std::int64_t original_max_position_embeddings = 0;
  std::optional<std::int64_t> max_position_embeddings = {};
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  std::optional<double> attention_factor = {}, mscale = {}, mscale_all_dim = {};
  bool scale_logits = false;
  bool dynamic = false;

  static constexpr std::string_view
      name = "yarn",
      aliases = "deepseek_yarn", title = "YaRN, as its authors' code does it",
      formula =
          "ramp·f_r/s + (1−ramp)·f_r, ramp from 0 at pair ⌊c(β_fast)⌋ to 1 at ⌈c(β_slow)⌉, "
          "c(n) = d·ln(L/2πn)/(2 ln b); cos, sin × (0.1 ln s + 1)",
      paper = "2309.00071";
  static constexpr auto fields() {
    return std::tuple{
        Field{"factor", &Yarn::factor, "s: new length over trained length; null: M/L", positive,
              "×"},
        Field{"original_max_position_embeddings", &Yarn::original_max_position_embeddings,
              "L: trained length", at_least_one, "tokens", "original_length", true},
        Field{"max_position_embeddings", &Yarn::max_position_embeddings,
              "M: used for a factor that is null", at_least_one, "tokens"},
        Field{"beta_fast", &Yarn::beta_fast, "pairs with more turns in L are left alone; 0: 32",
              not_negative, "turns"},
        Field{"beta_slow", &Yarn::beta_slow, "pairs with fewer turns in L are interpolated; 0: 1",
              not_negative, "turns"},
        Field{"truncate", &Yarn::truncate, "round the ramp's ends to whole pairs"},
        Field{"attention_factor", &Yarn::attention_factor,
              "on cos and sin, instead of 0.1 ln s + 1 or the mscale pair", positive},
        Field{"mscale", &Yarn::mscale,
              "numerator of DeepSeek's magnitude; counts only with mscale_all_dim", not_negative},
        Field{"mscale_all_dim", &Yarn::mscale_all_dim, "denominator of DeepSeek's magnitude",
              not_negative},
        Field{"scale_logits", &Yarn::scale_logits,
              "logits × (0.1·mscale_all_dim·ln s + 1)², as DeepSeek's attention does"},
        Field{"dynamic", &Yarn::dynamic, "s = max(1, length/L) instead of the factor"}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const Yarn&) const = default;
};

struct LongRope {
  std::vector<double> short_factor = {}, long_factor = {};
  std::int64_t original_max_position_embeddings = 0;
  std::optional<std::int64_t> max_position_embeddings = {};
  std::optional<double> factor = {}, attention_factor = {}, short_mscale = {}, long_mscale = {};

  static constexpr std::string_view
      name = "longrope",
      aliases = "su", title = "LongRoPE",
      formula = "f_r / λ_r, λ = long if length > L else short; cos, sin × √(1 + ln s/ln L)",
      paper = "2402.13753";
  static constexpr auto fields() {
    return std::tuple{
        Field{"short_factor", &LongRope::short_factor, "divisor of each pair up to L", positive, "",
              "", true},
        Field{"long_factor", &LongRope::long_factor, "divisor of each pair beyond L", positive, "",
              "", true},
        Field{"original_max_position_embeddings", &LongRope::original_max_position_embeddings,
              "L: trained length, where the lists switch", at_least_one, "tokens",
              "original_length", true},
        Field{"max_position_embeddings", &LongRope::max_position_embeddings,
              "M: s = M/L where no factor is given", at_least_one, "tokens"},
        Field{"factor", &LongRope::factor, "s: new length over trained length; null: M/L", positive,
              "×"},
        Field{"attention_factor", &LongRope::attention_factor,
              "on cos and sin, instead of √(1 + ln s/ln L)", positive},
        Field{"short_mscale", &LongRope::short_mscale, "attention factor up to L (Phi-3.5-MoE)",
              positive},
        Field{"long_mscale", &LongRope::long_mscale, "attention factor beyond L (Phi-3.5-MoE)",
              positive}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const LongRope&) const = default;
};

struct Llama3 {
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_max_position_embeddings = 0;

  static constexpr std::string_view
      name = "llama3",
      aliases = "llama-3", title = "Llama-3 scaling",
      formula = "turns = L·f_r/2π; f_r/s below low, f_r above high, linear in turns between",
      paper = "2407.21783";
  static constexpr auto fields() {
    return std::tuple{
        Field{"factor", &Llama3::factor, "s: divisor of the slow pairs", positive, "×", "", true},
        Field{"low_freq_factor", &Llama3::low_freq_factor,
              "pairs with fewer turns in L are divided by s", positive, "turns", "", true},
        Field{"high_freq_factor", &Llama3::high_freq_factor,
              "pairs with more turns in L are left alone", positive, "turns", "", true},
        Field{"original_max_position_embeddings", &Llama3::original_max_position_embeddings,
              "L: trained length", at_least_one, "tokens", "original_length", true}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const Llama3&) const = default;
};

struct Proportional {
  double partial_rotary_factor = 1, factor = 1;

  static constexpr std::string_view
      name = "proportional",
      aliases = "p-rope p_rope", title = "proportional RoPE (p-RoPE)",
      formula = "f_r = b^(−2r/d)/s for r < ⌊p·d/2⌋, else 0, with the exponent over all of d",
      paper = "2410.06205";
  static constexpr auto fields() {
    return std::tuple{
        Field{"partial_rotary_factor", &Proportional::partial_rotary_factor,
              "p: fraction of the pairs that rotate at all", fraction, ""},
        Field{"factor", &Proportional::factor, "s: divisor of all frequencies", positive, "×"}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const Proportional&) const = default;
};

struct Clipped {
  std::int64_t original_max_position_embeddings = 0;
  std::optional<std::int64_t> clip_low_n = {};

  static constexpr std::string_view
      name = "clipped",
      aliases = "clipped-rope clipped_rope soft-clip soft_clip", title = "clipped RoPE (CoPE)",
      formula =
          "f_r·(1 + cos(π·i/(n−1)))/2 for the last n of R pairs, i = r − R + n; n: those of "
          "less than one turn in L",
      paper = "2602.05258";
  static constexpr auto fields() {
    return std::tuple{
        Field{"original_max_position_embeddings", &Clipped::original_max_position_embeddings,
              "L: trained length", at_least_one, "tokens", "original_length", true},
        Field{"clip_low_n", &Clipped::clip_low_n,
              "n: slow pairs that fade out; null: those of less than one turn in L", not_negative,
              "pairs", "clip_n"}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const Clipped&) const = default;
};

struct Explicit {
  std::vector<double> frequencies = {};
  double attention_factor = 1;

  static constexpr std::string_view name = "explicit", aliases = "frequencies",
                                    title = "frequencies given one by one",
                                    formula = "f_r as given", paper = "";
  static constexpr auto fields() {
    return std::tuple{
        Field{"frequencies", &Explicit::frequencies, "one for each pair", any_number, "rad/token",
              "inv_freq", true},
        Field{"attention_factor", &Explicit::attention_factor, "on cos and sin", positive}};
  }
  template <class Real>
  Expected<Scaled<Real>> scaled(const RopeBase<Real>& base) const;
  bool operator==(const Explicit&) const = default;
};

// The list of scalings.
using Scaling = std::variant<Unscaled, Linear, NtkAware, DynamicNtk, NtkByParts, Yarn, LongRope,
                             Llama3, Proportional, Clipped, Explicit>;

}  // namespace posenc
