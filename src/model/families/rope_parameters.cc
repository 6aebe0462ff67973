// Chooses among the places where a file may have its rope parameters, as Hugging Face's
// configuration classes do, and warns where they pass over what the file says.
#include "src/model/families/rope_parameters.h"

#include <algorithm>
#include <string>
#include <utility>

namespace posenc::detail {
namespace {

// No parameter is an object, so one that is stands for a layer type. A rope_type beside it, as some
// files have it, says nothing.
bool is_by_layer_type(const Section& parameters) {
  const bool flat = parameters.has("rope_type type");
  return std::ranges::any_of(parameters.members(), [&](const JsonMember& member) {
    return member.value.get<Json::Object>() && (!flat || member.key.contains("attention"));
  });
}

// Whether the new spelling says anything that the old one, which wins, does not.
bool disagree(const Section& old, const Section& now) {
  return std::ranges::any_of(now.members(), [&](const JsonMember& member) {
    const Json* same = old.raw(member.key);
    if (!same && member.key == "rope_type") same = old.raw("type");
    return !same || same->text() != member.value.text();
  });
}

// Whether the family's code has parameters for each type of layer.
bool has_entries(const Family& family, const std::optional<Json>& defaults, Reading& reading) {
  return family.rope.by_layer_type || family.local.rope != LocalRope::same ||
         (defaults && is_by_layer_type(Section(reading, &*defaults)));
}

// The entry of one layer type.
RopeParameters entry_of(const Section& parameters, const Family& family, bool has_entries,
                        std::string_view layer_type) {
  Reading& reading = parameters.reading;
  if (!family.layers.types) {
    reading.warn("layer_types_unread", parameters.path() + " is given by layer type, and " +
                                           "Hugging Face's code for " + reading.family +
                                           " knows no layer types and reads nothing of it");
  } else if (!has_entries) {
    reading.warn("layer_types_unread",
                 parameters.path() + " is given by layer type, and Hugging Face's code for " +
                     reading.family +
                     " has one set of parameters for all layers and fails on it: each layer has "
                     "its own here; write one set");
  }
  const Json* entry = parameters.raw(layer_type);
  if (!entry) {
    reading.refuse(parameters.where(layer_type),
                   "is missing: rope parameters are given by layer type", "",
                   "add an entry for it, or null for a layer without position");
    return {.section = Section(reading), .whole = parameters};
  }
  if (!entry->is_null()) {
    return {.section = parameters.section(layer_type), .by_layer_type = true, .whole = parameters};
  }
  if (reading.model.known_family) {
    reading.warn("null_parameters", parameters.where(layer_type) +
                                        " is null: read as a layer without position, which "
                                        "Hugging Face's code for " +
                                        reading.family + " has not");
  }
  return {.section = Section(reading), .by_layer_type = true, .absent = true, .whole = parameters};
}

}  // namespace

std::optional<Json> default_parameters(const Family& family) {
  if (family.rope.parameters.empty()) return std::nullopt;
  auto json = parse_json(family.rope.parameters, family.types);
  return json ? std::optional(*std::move(json)) : std::nullopt;
}

RopeParameters find_parameters(const Section& config, const Family& family,
                               std::string_view layer_type, const std::optional<Json>& defaults) {
  Reading& reading = config.reading;
  const auto read = [&](std::string_view key) {
    Section found = config.section(key);
    if (!contains_word(family.rope.unread_parameters, key)) return found;
    if (!found.members().empty()) {
      reading.warn("unread_key", config.where(key) + " is not read by Hugging Face's code for " +
                                     reading.family + " and has no effect");
    }
    return Section(reading);
  };
  const Section old = read("rope_scaling");
  const Section now = read("rope_parameters");
  const bool old_wins = !old.members().empty();
  if (old_wins && disagree(old, now)) {
    reading.warn("two_spellings",
                 "rope_scaling and rope_parameters disagree; rope_scaling is used, as Hugging Face "
                 "does; keep one of them");
  }
  if (old_wins && family.local.rope != LocalRope::same && old.has("type") &&
      !old.has("rope_type")) {
    reading.warn("old_type", old.where("type") +
                                 " is the old name of rope_type, and transformers "
                                 "5 does not read it in " +
                                 reading.family + ": write rope_type");
  }
  const Section of_class(reading, defaults ? &*defaults : nullptr, "default of " + reading.family);
  const Section& parameters = old_wins ? old : now ? now : of_class;
  if (is_by_layer_type(parameters))
    return entry_of(parameters, family, has_entries(family, defaults, reading), layer_type);
  if (!old_wins && !now.members().empty() && family.local.rope != LocalRope::same) {
    reading.warn("flat_parameters",
                 now.path() + " must be given by layer type: Hugging Face's newest code for " +
                     reading.family + " reads nothing of it otherwise, no scaling either");
    return {.section = Section(reading), .whole = Section(reading)};
  }
  return {.section = parameters, .whole = parameters};
}

}  // namespace posenc::detail
