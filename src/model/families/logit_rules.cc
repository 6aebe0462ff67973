// The rules of logit_rules.h. Models were trained with these scales, so an engine that divides by
// √head_dim as usual is wrong in every layer, at every length.
#include "src/model/families/logit_rules.h"

#include <cmath>

namespace posenc::detail {
namespace {

double root_of(const LayerGroup& group) {
  return std::sqrt(static_cast<double>(group.geometry.head_dim));
}

}  // namespace

double noted_number(const Section& config, LayerGroup& group, std::string_view key,
                    double otherwise) {
  const auto said = config.number(key, positive);
  const double value = said ? said->value : otherwise;
  const std::string text = number_text(value);
  group.logits_note = std::string(key) + " " + text;
  note(group.provenance, key, text, said ? Origin::file : Origin::family,
       said ? said->key : "default of " + config.reading.family);
  return value;
}

void undivided(const Section&, LayerGroup& group) {
  group.logits.multiplier = root_of(group);
  group.logits_note = "q·k is not divided by √head_dim";
}

void query_pre_attn_capped(const Section& config, LayerGroup& group) {
  query_pre_attn(config, group);
  capped(config, group);
}

void capped(const Section& config, LayerGroup& group) {
  constexpr std::string_view key = "attn_logit_softcapping";
  if (const Json* const raw = config.raw(key); raw != nullptr && raw->is_null()) return;
  const auto said = config.number(key, positive);
  group.logits.softcap = said ? said->value : 50;
  note(group.provenance, key, number_text(group.logits.softcap),
       said ? Origin::file : Origin::family,
       said ? said->key : "default of " + config.reading.family);
}

void query_pre_attn(const Section& config, LayerGroup& group) {
  const double scalar = noted_number(config, group, "query_pre_attn_scalar", 256);
  group.logits.multiplier = std::sqrt(static_cast<double>(group.geometry.head_dim) / scalar);
}

void attention_multiplier(const Section& config, LayerGroup& group) {
  group.logits.multiplier = noted_number(config, group, "attention_multiplier", 1) * root_of(group);
}

void attention_multiplier_if_said(const Section& config, LayerGroup& group) {
  if (config.has("attention_multiplier")) attention_multiplier(config, group);
}

void scale_attn_weights(const Section& config, LayerGroup& group) {
  const auto scaled = config.flag("scale_attn_weights");
  if (!scaled || scaled->value) return;
  undivided(config, group);
  note(group.provenance, "scale_attn_weights", "false", Origin::file, scaled->key);
}

}  // namespace posenc::detail
