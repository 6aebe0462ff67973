// What two files of one model must agree on, layer by layer. The order of pairs is not part of it
// (one file's weights may be permuted for it), nor is a context that a file does not state.
#include "src/model/compare.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/model/gguf.h"
#include "src/text/number.h"

namespace posenc::detail {
std::int64_t layers_of(const Model& model, Stack stack) {
  std::int64_t count = 0;
  for (const LayerGroup& group : model.groups)
    if (group.stack == stack) count += std::ssize(group.layers);
  return count;
}

std::int64_t reach(const Model& model) {
  double furthest = 0;
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = rope_of(group);
    if (!rope) continue;
    const auto factor = number_of(rope->scaling, "factor"),
               original = number_of(rope->scaling, "original_max_position_embeddings");
    // Llama 3's factor says which waves are stretched, and the file itself how far it was trained.
    const bool is_told = std::holds_alternative<Llama3>(rope->scaling) && original &&
                         static_cast<double>(model.context) > *original;
    // HunYuan's alpha of 1000 is for 256k tokens, as its report has it and llama.cpp's converter.
    constexpr double alpha = 1000, reached = 262144;
    const auto is_alpha = [](const Provenance& value) {
      return value.field == "factor" && value.detail.ends_with("alpha");
    };
    if (std::holds_alternative<NtkAware>(rope->scaling) && factor == alpha &&
        std::ranges::any_of(group.provenance, is_alpha))
      furthest = std::max(furthest, reached);
    if (factor && original && !is_told) furthest = std::max(furthest, *factor * *original);
  }
  return static_cast<std::int64_t>(std::min(furthest, 0x1p50));
}

std::int64_t trained_length(const Model& model) {
  for (const LayerGroup& group : model.groups)
    for (const Provenance& value : group.provenance)
      if (value.origin == Origin::file && value.detail == "max_trained_positions") {
        const std::int64_t tokens = whole_number(value.value).value_or(0);
        if (tokens > 0 && tokens < model.context) return tokens;
      }
  return model.context;
}

bool is_converters_context(const Model& model) {
  if (model.files.empty() || model.files.front().format != FileFormat::gguf) return false;
  const Architecture* row = find_architecture(model.family);
  return row && row->converted_context > 0 && row->converted_context == model.context;
}

std::int64_t widest_window(const Model& model) {
  std::int64_t widest = 0;
  for (const LayerGroup& group : model.groups) {
    if (is_tower(group.stack) || !rope_of(group)) continue;
    if (!group.window) return 0;
    widest = std::max(widest, *group.window);
  }
  return widest;
}

bool is_draft_of(const Model& target, const Model& model) {
  constexpr std::int64_t fewer = 4;
  const std::int64_t whole = layers_of(target, Stack::text), own = layers_of(model, Stack::text);
  return own > 0 && fewer * own <= whole;
}

bool could_be_one_model(const Model& a, const Model& b) {
  const LayerGroup *mine = find_group(a, 0, Stack::text), *theirs = find_group(b, 0, Stack::text);
  if (mine == nullptr || theirs == nullptr) return true;
  return layers_of(a, Stack::text) == layers_of(b, Stack::text) &&
         mine->geometry.heads == theirs->geometry.heads &&
         mine->geometry.head_dim == theirs->geometry.head_dim;
}

const Rope* rope_of(const LayerGroup& group) {
  for (const Scheme& scheme : group.schemes)
    if (const Rope* rope = std::get_if<Rope>(&scheme)) return rope;
  return nullptr;
}

const Rope* rope_of_text(const Model& model) {
  for (const LayerGroup& group : model.groups)
    if (const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group)) return rope;
  return nullptr;
}

std::int64_t grown_by_length(const Model& model) {
  double most = 0;
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
    if (const auto* dynamic = rope ? std::get_if<DynamicNtk>(&rope->scaling) : nullptr)
      most =
          std::max(most, dynamic->factor * static_cast<double>(dynamic->max_position_embeddings));
  }
  return static_cast<std::int64_t>(std::min(most, 0x1p50));
}

std::vector<std::string_view> parts_around(const LayerGroup& group) {
  for (const Provenance& value : group.provenance) {
    for (const std::string_view part : {"text_config", "llm_config", "language_config"})
      if (value.detail.starts_with(std::string(part) + ".")) return {part};
    if (value.detail.starts_with("thinker_config.text_config."))
      return {"thinker_config", "text_config"};
  }
  return {};
}

std::vector<std::string_view> parts_around(const Model& model) {
  for (const LayerGroup& group : model.groups)
    if (auto parts = parts_around(group); !parts.empty()) return parts;
  return {};
}

std::string within_parts(const std::vector<std::string_view>& parts, std::string json) {
  for (const std::string_view part : parts | std::views::reverse)
    json = "{\"" + std::string(part) + "\":" + json + "}";
  return json;
}

double stretch_of_base(const Model& before, const Model& now) {
  double most = 1;
  for (std::size_t i = 0; i < std::min(before.groups.size(), now.groups.size()); ++i) {
    const Rope *was = rope_of(before.groups[i]), *is = rope_of(now.groups[i]);
    if (!was || !is || is_tower(now.groups[i].stack) || is->rope_theta <= was->rope_theta) continue;
    const auto plan = compile(now.groups[i]);
    const double d = plan && plan->rotate ? static_cast<double>(2 * plan->rotate->pairs()) : 0;
    if (d > 2) most = std::max(most, std::pow(is->rope_theta / was->rope_theta, (d - 2) / d));
  }
  return most;
}

std::string scheme_text(const LayerGroup& group) {
  std::string text;
  for (const Scheme& scheme : group.schemes)
    text += (text.empty() ? "" : " + ") + std::string(info(scheme).name);
  return text;
}

std::string scaling_text(const Scaling& scaling) {
  std::string text(info(scaling).name);
  for (const FieldSetting& setting : settings(scaling)) {
    if (setting.name != "factor" && setting.name != "original_max_position_embeddings") continue;
    if (const auto* x = std::get_if<double>(&setting.value))
      text += " " + std::string(setting.name) + " " + number_text(*x);
    if (const auto* i = std::get_if<std::int64_t>(&setting.value))
      text += " " + std::string(setting.name) + " " + std::to_string(*i);
  }
  return text;
}

std::string window_text(const Model& model, const LayerGroup& group) {
  const bool cuts = group.window && (model.context == 0 || *group.window < model.context);
  return cuts ? std::to_string(*group.window) : "none";
}

bool same_temperature(const Logits& a, const Logits& b) {
  if (a.has_temperature() != b.has_temperature()) return false;
  return !a.has_temperature() ||
         (a.temperature == b.temperature && nearly(a.beta, b.beta) && nearly(a.floor, b.floor) &&
          nearly(a.offset, b.offset) && a.head_scale == b.head_scale && a.head_bias == b.head_bias);
}

std::string logits_text(const Logits& logits) {
  std::string text = "×" + number_text(logits.multiplier);
  if (logits.temperature == Temperature::heads)
    text += " with a learned temperature";
  else if (logits.beta != 0)
    text += " with beta " + number_text(logits.beta) + " from " + number_text(logits.floor) +
            (logits.temperature == Temperature::log     ? " by logarithm"
             : logits.temperature == Temperature::power ? " as a power"
                                                        : "");
  if (logits.softcap != 0) text += ", capped softly at " + number_text(logits.softcap);
  return text;
}

namespace {

bool states(const Model& model, std::string_view field) {
  for (const LayerGroup& group : model.groups)
    for (const Provenance& value : group.provenance)
      if (value.field == field && value.origin == Origin::file) return true;
  return false;
}

class Comparison {
 public:
  Comparison(Model& model, const Model& other, std::string_view file, std::string_view other_file)
      : model_(model), other_(other), file_(file), other_file_(other_file) {}

  void run() {
    if (states(model_, "context") && states(other_, "context"))
      number("context", model_.context, other_.context);
    for (const Stack stack : {Stack::text, Stack::encoder, Stack::decoder}) {
      const std::int64_t count = layers_of(model_, stack), others = layers_of(other_, stack);
      number("layers", count, others);
      for (std::int64_t i = 0; i < std::min(count, others); ++i) {
        const LayerGroup *a = find_group(model_, i, stack), *b = find_group(other_, i, stack);
        layer_ = i;
        if (a && b) layer(*a, *b);
      }
    }
  }

 private:
  void layer(const LayerGroup& a, const LayerGroup& b) {
    number("heads", a.geometry.heads, b.geometry.heads);
    number("kv_heads", a.geometry.kv_heads, b.geometry.kv_heads);
    number("head_dim", a.geometry.head_dim, b.geometry.head_dim);
    text("window", window_text(model_, a), window_text(other_, b));
    const Rope *rope = rope_of(a), *other = rope_of(b);
    if (!rope || !other) text("scheme", scheme_text(a), scheme_text(b));
    // Groups repeat over the layers; a pair of them is compiled once.
    if (!seen_.insert({&a, &b}).second) return;
    const auto plan = compile(a), others = compile(b);
    if (!plan || !others) return;
    if (rope && other && plan->rotate && others->rotate) rotation(*rope, *plan, *other, *others);
    rest(*plan, *others);
  }

  void rotation(const Rope& rope, const Plan& plan, const Rope& other, const Plan& others) {
    if (!nearly(rope.rope_theta, other.rope_theta))
      text("rope_theta", number_text(rope.rope_theta), number_text(other.rope_theta));
    number("rotary_dim", plan.rotate->slice.rotary_dim, others.rotate->slice.rotary_dim);
    // Compared by what it does: files spell one scaling in several ways.
    const bool comparable = nearly(rope.rope_theta, other.rope_theta) &&
                            plan.rotate->slice.rotary_dim == others.rotate->slice.rotary_dim;
    if (comparable && !nearly(plan.rotate->frequencies.radians, others.rotate->frequencies.radians))
      differ("rope_scaling", scaling_text(rope.scaling), scaling_text(other.scaling));
    if (!nearly(plan.rotate->amplitude, others.rotate->amplitude))
      text("amplitude", number_text(plan.rotate->amplitude), number_text(others.rotate->amplitude));
    for (const MemberDifference& one : member_differences(*plan.rotate, *others.rotate))
      if (!told_of_files(one.member)) differ("rotation's " + one.member, one.expected, one.found);
  }

  // The order of pairs is no part of it; the rest is told by the words of a file.
  static bool told_of_files(std::string_view member) {
    constexpr std::string_view others[] = {"pairing", "rotary_dim", "frequencies", "amplitude"};
    return std::ranges::any_of(others, [&](auto name) { return is_of(name, member); });
  }

  // What acts beside a rotation. Learned tables are not read here, and what a file calls its
  // buckets changes nothing.
  void rest(const Plan& plan, const Plan& others) {
    for (const MemberDifference& one : member_differences(plan, others))
      if (is_of("add", one.member) || is_of("bias", one.member) || is_of("relative", one.member))
        differ(one.member, one.expected, one.found);
    const Logits &logits = plan.logits, &their = others.logits;
    if (!nearly(logits.multiplier, their.multiplier) || !same_temperature(logits, their) ||
        !nearly(logits.softcap, their.softcap))
      differ("logits", logits_text(logits), logits_text(their));
  }

  void number(std::string_view field, std::int64_t a, std::int64_t b) {
    text(field, std::to_string(a), std::to_string(b));
  }

  void text(std::string_view field, const std::string& a, const std::string& b) {
    if (a != b) differ(field, a, b);
  }

  // Once for a field, at the first layer where it is so.
  void differ(std::string_view field, const std::string& a, const std::string& b) {
    if (!told_.insert(std::string(field)).second) return;
    const std::string at = layer_ > 0 ? " (first in layer " + std::to_string(layer_) + ")" : "";
    model_.warnings.push_back({"files_disagree", std::string(field) + at + " is " + a + " in " +
                                                     std::string(file_) + " and " + b + " in " +
                                                     std::string(other_file_) + "; that of " +
                                                     std::string(file_) + " is used"});
  }

  Model& model_;
  const Model& other_;
  std::string_view file_, other_file_;
  std::int64_t layer_ = 0;
  std::set<std::pair<const LayerGroup*, const LayerGroup*>> seen_;
  std::set<std::string> told_;
};

}  // namespace

void compare(Model& model, const Model& other, std::string_view file, std::string_view other_file) {
  Comparison(model, other, file, other_file).run();
}

}  // namespace posenc::detail
