// Which keys llama.cpp reads for which architecture. Some keys it reads for all, some for the few
// whose rows name them; the others' loaders pass over them, so that what such a key says has no
// effect on what runs, and an explanation that followed it would be wrong.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/model/gguf.h"

namespace posenc::detail {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// A key that not every architecture reads, and the value by which it says nothing: a number, or
// what another key says.
struct SomeKey {
  std::string_view key;
  double nothing = nan;
  std::string_view like = {};
};

constexpr std::string_view window_key = "attention.sliding_window";

constexpr SomeKey keys_of_some[] = {
    {window_key, 0},
    {"attention.sliding_window_pattern"},  // where no window is read, that alone is said
    {"attention.scale"},
    {"attention.output_scale"},
    {"attention.value_scale", 1},
    {"attention.key_length_swa", nan, "attention.key_length"},
    {"attention.value_length_swa", nan, "attention.value_length"},
    {"attention.temperature_scale", 0},
    {"attention.temperature_length", 0},
    {"attention.max_alibi_bias", 0},
    {"attention.shared_kv_layers", 0},
    {"attention.rope_pattern"},
    {"attention.recurrent_layers"},
    {"attn_logit_softcapping", 0},
    {"full_attention_interval", 1},
    {"num_loops", 1},
    {"rope.dimension_count_swa", nan, "rope.dimension_count"},
    {"rope.dimension_sections"},
    {"rope.freq_base_swa", nan, "rope.freq_base"},
    {"rope.scaling.alpha", 0},
    {"rope.scaling.yarn_log_multiplier", 0},
    {"rope.scaling.yarn_ext_factor", 1},
    {"rope.scaling.yarn_attn_factor", 1},
    {"rope.scaling.yarn_beta_fast", 32},
    {"rope.scaling.yarn_beta_slow", 1},
    // Read for all but those whose rows say otherwise.
    {"rope.freq_base", 10000},
    {"rope.dimension_count", nan, "attention.key_length"},
    {"rope.scaling.type"},
    {"rope.scaling.factor", 1},
    {"rope.scaling.attn_factor", 1},
};

// Of those, what is read without being named in a row.
constexpr std::string_view read_by_most =
    "rope.freq_base rope.dimension_count rope.scaling.type rope.scaling.factor "
    "rope.scaling.attn_factor";

bool read_for_windows(const Architecture& row, std::string_view key) {
  if (row.slides == Slides::never) return false;
  if (key != "rope.freq_base_swa") return true;
  return row.local == LocalRope::own_theta || row.local == LocalRope::own_theta_scaled;
}

bool says_nothing(const GgufTranslation& gguf, const SomeKey& rule, const GgufValue& value) {
  const auto number = plain_number(value);
  if (!number) return false;
  if (rule.key.ends_with("ext_factor") && *number < 0) return true;  // "not given"
  if (*number == rule.nothing) return true;
  const GgufValue* other = rule.like.empty() ? nullptr : gguf.find_unread(rule.like);
  return other && plain_number(*other) == number;
}

// A window that the context never fills says nothing either.
bool beyond_context(const GgufTranslation& gguf, const SomeKey& rule, const GgufValue& value) {
  if (rule.key != window_key) return false;
  const GgufValue* context = gguf.find_unread("context_length");
  const auto most = context ? plain_number(*context) : std::nullopt;
  return most && plain_number(value) >= most;
}

}  // namespace

bool reads_key(const Architecture& row, std::string_view key) {
  if (contains_word(row.unread, key)) return false;
  if (contains_word(row.reads, key)) return true;
  if (key.starts_with(window_key) || key == "rope.freq_base_swa") return read_for_windows(row, key);
  if (key == "rope.dimension_sections")
    return row.rotation == Rotation::mrope || row.may_have_sections;
  return contains_word(read_by_most, key) ||
         std::ranges::find(keys_of_some, key, &SomeKey::key) == std::end(keys_of_some);
}

void warn_of_ranges(GgufTranslation& gguf) {
  struct Bounded {
    std::string_view key;
    double most;
    std::string_view what;
  };
  constexpr Bounded bounded[] = {
      {"rope.scaling.yarn_ext_factor", 1, "a mix from 0 to 1"},
      {"rope.scaling.yarn_attn_factor", 4, "a factor on cos and sin, near 1"},
      {"rope.scaling.attn_factor", 4, "a factor on cos and sin, near 1"},
  };
  for (const auto& [key, most, what] : bounded) {
    const GgufValue* value = gguf.find_unread(key);
    const auto number = value ? plain_number(*value) : std::nullopt;
    if (!number || *number <= most) continue;  // below 0: not given
    const auto factor = gguf.number("rope.scaling.factor");
    gguf.reading().warn("gguf_key_out_of_range",
                        gguf.path(key) + " is " + number_text(*number) + ", and it is " +
                            std::string(what) +
                            (factor == number ? ": the converter wrote the factor into it" : "") +
                            ". llama.cpp reads it for few architectures, its forks for more; "
                            "convert again, or write 1");
  }
}

void warn_of_unread_keys(const GgufTranslation& gguf) {
  const Architecture* row = gguf.row();
  if (!row) return;
  for (const SomeKey& rule : keys_of_some) {
    const bool rotary = rule.key.starts_with("rope.");
    if ((rotary && row->rotation == Rotation::none) || reads_key(*row, rule.key)) continue;
    const bool pattern =
        rule.key.starts_with(window_key) && rule.key != window_key && !reads_key(*row, window_key);
    const GgufValue* value = pattern ? nullptr : gguf.find_unread(rule.key);
    if (!value || says_nothing(gguf, rule, *value) || beyond_context(gguf, rule, *value)) continue;
    gguf.not_read(rule.key);
  }
}

}  // namespace posenc::detail
