// Cures that leave no choice, written into a configuration's text: each is made, read again, and
// kept where the warning is gone and no other has come.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "posenc/tools.h"
#include "src/core/edit_distance.h"
#include "src/core/try.h"
#include "src/model/compare.h"
#include "src/text/json.h"
#include "src/text/json_place.h"

namespace posenc {
namespace {

using detail::find_member, detail::JsonPlace;

std::string_view last_key(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? path : path.substr(dot + 1);
}

std::string beside(std::string_view path, std::string_view key) {
  const std::size_t dot = path.rfind('.');
  return (dot == path.npos ? std::string() : std::string(path.substr(0, dot + 1))) +
         std::string(key);
}

std::string_view value_at(std::string_view text, const JsonPlace& place) {
  return text.substr(place.value, place.value_end - place.value);
}

std::string renamed(std::string_view text, const JsonPlace& place, std::string_view key) {
  return std::string(text.substr(0, place.key)) + "\"" + std::string(key) + "\"" +
         std::string(text.substr(place.key_end));
}

// The two values exchanged, whichever stands first.
std::string exchanged(std::string_view text, JsonPlace a, JsonPlace b) {
  if (a.value > b.value) std::swap(a, b);
  return std::string(text.substr(0, a.value)) + std::string(value_at(text, b)) +
         std::string(text.substr(a.value_end, b.value - a.value_end)) +
         std::string(value_at(text, a)) + std::string(text.substr(b.value_end));
}

// One cure: the new text, and what was done.
struct Cure {
  std::string text = {}, was = {}, is = {}, done = {};
  bool same_rotation = true;  // it only says otherwise what was read before
};

// The field of a scaling whose name is a slip of the pen away from a key: one letter, or two
// exchanged.
std::optional<std::string> meant_key(const Model& model, std::string_view key) {
  constexpr std::size_t shortest = 6, longest = 64, slip = 2;
  if (key.size() < shortest || key.size() > longest) return {};
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = detail::rope_of(group);
    if (!rope) continue;
    for (const FieldSetting& setting : settings(rope->scaling))
      if (detail::edit_distance(key, setting.name) <= slip) return std::string(setting.name);
  }
  return {};
}

std::optional<double> derived_factor(const Model& model) {
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = detail::rope_of(group);
    const auto* yarn = rope ? std::get_if<Yarn>(&rope->scaling) : nullptr;
    if (yarn && !yarn->factor && yarn->max_position_embeddings)
      return static_cast<double>(*yarn->max_position_embeddings) /
             static_cast<double>(yarn->original_max_position_embeddings);
  }
  return {};
}

std::optional<Cure> cure_of(const Model& model, std::string_view text, const Warning& warning) {
  const std::string_view message = warning.message;
  std::string_view path = message.substr(0, message.find(' '));
  if (warning.code == "betas_reversed") {
    path = message.substr(0, message.find(':'));
    const auto fast = find_member(text, std::string(path) + ".beta_fast"),
               slow = find_member(text, std::string(path) + ".beta_slow");
    if (!fast || !slow) return {};
    return Cure{exchanged(text, *fast, *slow), "beta_fast " + std::string(value_at(text, *fast)),
                "beta_fast " + std::string(value_at(text, *slow)),
                "beta_fast and beta_slow are exchanged", false};
  }
  if (warning.code == "factor_missing") {
    const auto type = find_member(text, beside(path, "rope_type")),
               old = find_member(text, beside(path, "type"));
    const auto factor = derived_factor(model);
    if ((!type && !old) || !factor || find_member(text, path)) return {};
    const std::string said =
        number_text(*factor).contains('.') ? number_text(*factor) : number_text(*factor) + ".0";
    return Cure{detail::with_member_behind(text, type ? *type : *old, "factor", said), "", said,
                "the factor that follows from the lengths is written"};
  }
  const auto place = find_member(text, path);
  if (!place) return {};
  if (warning.code == "zero_beta")
    return Cure{detail::without_member(text, *place), std::string(path) + " 0", "",
                "the key is dropped: the default holds as before"};
  if (warning.code == "old_type" && !find_member(text, beside(path, "rope_type")))
    return Cure{renamed(text, *place, "rope_type"), std::string(path), beside(path, "rope_type"),
                "the key has its new name"};
  if (warning.code == "unknown_key") {
    const auto meant = meant_key(model, last_key(path));
    if (!meant || find_member(text, beside(path, *meant))) return {};
    return Cure{renamed(text, *place, *meant), std::string(path), beside(path, *meant),
                "the key's spelling is corrected", false};
  }
  return {};
}

// Whether a cure has taken this warning away and brought none.
bool is_better(const Model& before, const Model& after, const Warning& cured) {
  if (std::ranges::find(after.warnings, cured) != after.warnings.end()) return false;
  return std::ranges::all_of(after.warnings, [&](const Warning& one) {
    return std::ranges::find(before.warnings, one, {}) != before.warnings.end();
  });
}

bool same_plans(const Model& before, const Model& after) {
  if (before.groups.size() != after.groups.size()) return false;
  for (std::size_t g = 0; g < before.groups.size(); ++g) {
    const Expected<Plan> a = compile(before.groups[g], before.context),
                         b = compile(after.groups[g], after.context);
    if (!a || !b || !(*a == *b)) return false;
  }
  return true;
}

}  // namespace

Expected<MendedConfig> mend(std::string_view config, std::string_view name) {
  POSENC_TRY(first, read_config(config, name));
  MendedConfig out{.text = std::string(config)};
  Model model = first;
  // A cure may make another possible; each takes a warning away, so that this ends.
  for (bool again = true; again;) {
    again = false;
    for (const Warning& warning : model.warnings) {
      const auto cure = cure_of(model, out.text, warning);
      if (!cure) continue;
      const Expected<Model> read = read_config(cure->text, name);
      if (!read || !is_better(model, *read, warning)) continue;
      if (cure->same_rotation && !same_plans(model, *read)) continue;
      out.mended.push_back({.code = warning.code,
                            .severity = Severity::note,
                            .expected = printable(cure->was),
                            .found = printable(cure->is),
                            .message = cure->done});
      out.text = cure->text;
      model = *read;
      again = true;
      break;
    }
  }
  return out;
}

}  // namespace posenc
