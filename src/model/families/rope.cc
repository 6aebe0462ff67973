// Hugging Face's rules (modeling_rope_utils), as of version 5:
// Beside the parameters each family's code reads its own spelling, and many read no partial factor
// at all. Where two places say different things, the one that Hugging Face takes is used, with a
// warning; so is a key that its code does not read.
#include "src/model/families/rope.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "src/core/small_letters.h"
#include "src/files/field_value.h"
#include "src/model/families/rope_parameters.h"

namespace posenc::detail {
namespace {

// Fields of ours that no file has: they are set by the family's rule, never by a key.
bool is_ours(std::string_view name) {
  return contains_word("scale_logits dynamic max_position_embeddings", name);
}

class RopeReader {
 public:
  RopeReader(const Section& config, const Family& family, const RopeAsk& ask, ProvenanceList& notes)
      : config_(config),
        reading_(config.reading),
        family_(family),
        ask_(ask),
        notes_(notes),
        defaults_(default_parameters(family)),
        parameters_(find_parameters(config, family, ask.layer_type, defaults_)) {}

  RopeFound read() {
    if (parameters_.absent) {
      note(notes_, "rope", "none", Origin::file, std::string(ask_.layer_type) + ": null");
      return {};
    }
    RopeFound found;
    const std::size_t first = notes_.size();
    note(notes_, "pairing", name(family_.rope.pairing), Origin::family,
         "rule of " + reading_.family);
    rope_.pairing = family_.rope.pairing;
    read_scaling();
    read_theta();
    if (family_.rope.ntk_divides) divide_ntk();
    read_rotary_dim();
    read_sections();
    read_mixture(found);
    if (const auto beta = parameters_.section.number("llama_4_scaling_beta", not_negative)) {
      found.beta = beta->value;
      note(notes_, "llama_4_scaling_beta", number_text(beta->value), Origin::file, beta->key);
    }
    const auto floor = parameters_.section.number(
        "llama_4_scaling_original_max_position_embeddings", at_least_one);
    if (floor) found.beta_floor = floor->value;
    found.original = static_cast<std::int64_t>(
        number_of(rope_.scaling, "original_max_position_embeddings").value_or(0));
    warn_of_unread();
    warn_of_own_code();
    warn_of_repositioning();
    for (Provenance& value : std::span(notes_).subspan(first)) {
      if (value.detail.starts_with("default of ")) value.origin = Origin::family;
    }
    if (!reading_.error) {
      const bool stated =
          std::ranges::any_of(std::span(notes_).subspan(first), [](const Provenance& value) {
            return value.field == "original_max_position_embeddings" &&
                   value.origin == Origin::file;
          });
      lint_scaling(config_, family_, rope_.scaling, ask_.context, parameters_.section.path(),
                   stated);
      warn_of_lost_base();
    }
    found.rope = std::move(rope_);
    return found;
  }

 private:
  bool unscaled_layer() const {
    const bool by_family =
        ask_.local && !parameters_.by_layer_type &&
        (family_.local.rope == LocalRope::unscaled || family_.local.rope == LocalRope::own_theta);
    return by_family || ask_.unscaled;
  }
  bool own_theta() const {
    return ask_.local &&
           (family_.local.rope == LocalRope::own_theta ||
            family_.local.rope == LocalRope::own_theta_scaled || family_.local.theta != 0);
  }

  std::string read_type() {
    const Section& p = parameters_.section;
    const auto type = p.word("rope_type"), old = p.word("type");
    // transformers 5 puts its own word beside that of an older file.
    const auto is_renamed = [&](std::string_view before, std::string_view now) {
      return type && old && old->value == before && type->value == now;
    };
    if (type && old && type->value != old->value && !is_renamed("mrope", "default") &&
        !is_renamed("su", "longrope")) {
      reading_.warn("type_conflict", type->key + " is '" + type->value + "' and " + old->key +
                                         " is '" + old->value +
                                         "'; rope_type is used, as Hugging Face does");
      note(notes_, "unused_type", old->value, Origin::file, old->key);
    }
    const auto& said = type ? type : old;
    if (!said) return "default";
    type_key_ = said->key;
    if (said->value == "xdrope" && family_.rope.alpha)
      return "dynamic";  // with alpha, as HunYuan's
    // "telechat3-yarn"
    flatter_ = family_.rope.flatter_yarn && said->value.ends_with("-yarn");
    if (flatter_) {
      spelling_ = said->value;
      return "yarn";
    }
    if (said->value != "mrope") return said->value;
    if (!p.has("mrope_section")) {
      reading_.refuse(p.where("mrope_section"), "is missing: the type is mrope", "",
                      "give the pairs for time, height and width");
    }
    return "default";  // an old name: the frequencies are plain, the axes are mrope_section's
  }

  void read_scaling() {
    const Section& p = parameters_.section;
    std::string type = read_type();
    const auto alpha = p.number("alpha", not_negative);
    const bool ntk = type == "dynamic" && alpha && alpha->value != 0;
    if (ntk && !family_.rope.alpha) {
      reading_.warn("alpha_of_hunyuan",
                    alpha->key + " is " + number_text(alpha->value) +
                        ": HunYuan's NTK-aware scaling is used; Hugging Face's code for " +
                        reading_.family + " ignores the key");
    }
    if (ntk) type = "ntk";
    if (type == "default" && read_stretch()) return;
    if (type != "default") note_trained_length();
    if (unscaled_layer()) {
      note(notes_, "rope_type", "default", ask_.unscaled ? Origin::file : Origin::family,
           ask_.unscaled ? "yarn_only_types" : reading_.family + ": sliding layers are unscaled");
      return;
    }
    auto scaling = make_scaling(type);
    if (!scaling && config_.has("auto_map")) {
      reading_.refuse(type_key_, "is not a known scaling", "'" + type + "'",
                      "the code beside the weights (auto_map) has it, which engines do not run: "
                      "serve it by transformers with trust_remote_code, and write no other type");
      return;
    }
    if (!scaling) {
      reading_.refuse(type_key_, "is not a known scaling", "'" + type + "'", scaling.error().cure);
      return;
    }
    rope_.scaling = std::move(*scaling);
    note(notes_, "rope_type", spelling_.empty() ? type : spelling_,
         type_key_.empty() ? Origin::derived : Origin::file,
         type_key_.empty() ? "no scaling in the file" : type_key_);
    read_fields(ntk);
    read_lengths();
    require_fields();
    read_truncate();
    if (family_.rope.short_factors && std::holds_alternative<LongRope>(rope_.scaling)) {
      reading_.warn("long_factor_unread",
                    parameters_.section.where("long_factor") +
                        " is not read by transformers' code for " + reading_.family +
                        ", which keeps the short factors at every length; other engines switch");
    }
    read_mscales();
    Yarn* yarn = std::get_if<Yarn>(&rope_.scaling);
    if (yarn && flatter_ && yarn->factor && !yarn->attention_factor) {
      yarn->attention_factor = 0.07 * std::log(std::max(*yarn->factor, 1.0)) + 1;
      note(notes_, "attention_factor", number_text(*yarn->attention_factor), Origin::family,
           "rule of " + reading_.family + ": 0.07 ln s + 1");
    }
    if (yarn && family_.attention.scale_logits && yarn->mscale_all_dim.value_or(0) != 0) {
      yarn->scale_logits = true;
      note(notes_, "scale_logits", "true", Origin::family, "rule of " + reading_.family);
    }
  }

  void note_trained_length() {
    if (family_.rope.stretch.empty()) return;
    if (const auto trained = config_.integer("max_trained_positions", Range{.least = 1}))
      note(notes_, "trained_length", std::to_string(trained->value), Origin::file, trained->key);
  }

  // Nomic's first files: dynamic NTK, whose M is max_trained_positions.
  bool read_stretch() {
    if (family_.rope.stretch.empty()) return false;
    const auto factor = config_.number(family_.rope.stretch, positive);
    const auto trained = config_.integer("max_trained_positions", Range{.least = 1});
    if (!factor) {
      note_trained_length();
      return false;
    }
    const std::int64_t most = trained ? trained->value : family_.context;
    rope_.scaling = DynamicNtk{.factor = factor->value, .max_position_embeddings = most};
    note(notes_, "rope_type", "dynamic", Origin::family, "rule of " + reading_.family);
    note(notes_, "factor", number_text(factor->value), Origin::file, factor->key);
    note(notes_, "max_position_embeddings", std::to_string(most),
         trained ? Origin::file : Origin::family,
         trained ? trained->key : "default of " + reading_.family);
    reading_.warn("family_remark", factor->key +
                                       ": the code published with the weights grows the "
                                       "base beyond " +
                                       std::to_string(most) +
                                       " tokens by it; transformers' own class does not");
    return true;
  }

  // Hugging Face's general code of longrope has no such factors; PhiMoE's own has.
  void read_mscales() {
    LongRope* longrope = std::get_if<LongRope>(&rope_.scaling);
    const bool own = family_.own_code || family_.rope.short_factors;
    if (!longrope || own || !reading_.model.known_family) return;
    if (!longrope->short_mscale && !longrope->long_mscale) return;
    reading_.warn("mscales_unread",
                  parameters_.section.where("short_mscale") +
                      " and long_mscale are not read by transformers' code for " + reading_.family +
                      "; vLLM and others multiply cos and sin by them; write attention_factor, or "
                      "drop the keys");
    longrope->short_mscale.reset();
    longrope->long_mscale.reset();
  }

  // Every key goes to the scaling's field of that name; what it does not have is a warning.
  void read_fields(bool ntk) {
    const Section& p = parameters_.section;
    constexpr std::string_view elsewhere =
        "type rope_type rope_theta mrope_section xdrope_section mrope_interleaved "
        "llama_4_scaling_beta "
        "llama_4_scaling_original_max_position_embeddings";
    for (const JsonMember& member : p.members()) {
      if (reading_.error) return;
      const std::string_view key = member.key;
      const FieldInfo* field = is_ours(key) ? nullptr : find_field(info(rope_.scaling), key);
      if (member.value.is_null() || contains_word(elsewhere, key)) continue;
      if (!field) {
        const bool read_later =
            key == "partial_rotary_factor" ||
            (key == "interleaved" && p.has("mrope_interleaved")) ||  // Qwen3-Omni says it twice
            (ntk && key == "factor") || (family_.rope.ntk_divides && key == "mixed_b") ||
            same_as_config(member);
        if (!read_later) unknown(key);
        continue;
      }
      if (field->name == "factor" && ntk && key != "alpha") continue;  // alpha is the factor
      if (contains_word("beta_fast beta_slow", field->name) && member.value.text() == "0") {
        reading_.warn("zero_beta",
                      p.where(key) + " is 0, which Hugging Face reads as not given: the default " +
                          "holds; drop the key");
        continue;
      }
      const auto set = set_field(rope_.scaling, field->name, to_field(member.value));
      if (!set) {
        reading_.refuse(p.where(key), set.error().rule,
                        set.error().got.empty() ? member.value.text() : set.error().got,
                        set.error().cure.empty() ? "correct the file" : set.error().cure);
        return;
      }
      given_.push_back(std::string(field->name));
      note(notes_, field->name, member.value.text(), Origin::file, p.where(key));
    }
  }

  // b^(−2r/d) / e^(a·(r+1)^mixed_b), a = ln s / (d/2)^mixed_b: the last pair is divided by s.
  void mix_ntk(double s, const Found<double>& mixed) {
    const std::int64_t pairs = ask_.head_dim / 2;
    const double a = std::log(s) / std::pow(static_cast<double>(pairs), mixed.value);
    for (std::int64_t r = 0; r < pairs; ++r)
      rope_.frequency_factors.push_back(
          std::exp(a * std::pow(static_cast<double>(r + 1), mixed.value)));
    rope_.scaling = Unscaled{};
    note(notes_, "frequency_factors", "1 to " + number_text(s), Origin::family,
         "the ntk of " + reading_.family + " with " + mixed.key +
             ": b^(−2r/d) / e^(a·(r+1)^mixed_b), a = ln s / (d/2)^mixed_b");
  }

  // (b·s)^(−2r/d) / s^(2/d): plain rotation by a larger base, all of it a little slower.
  void divide_ntk() {
    const auto* ntk = std::get_if<NtkAware>(&rope_.scaling);
    if (!ntk || ask_.head_dim <= 0) return;
    if (const auto mixed = parameters_.section.number("mixed_b", positive))
      return mix_ntk(ntk->factor, *mixed);
    const double s = ntk->factor, divisor = std::pow(s, 2 / static_cast<double>(ask_.head_dim));
    rope_.rope_theta *= s;
    rope_.scaling = Linear{.factor = divisor};
    note(notes_, "ntk",
         "base × " + number_text(s) + ", every frequency over " + number_text(divisor),
         Origin::family,
         "the ntk of " + reading_.family + ": (b·s)^(−2r/d) / s^(2/d), and no other's");
  }

  // Hugging Face looks for truncate beside the layer types, never in their entries.
  void read_truncate() {
    Yarn* yarn = std::get_if<Yarn>(&rope_.scaling);
    if (!yarn) return;
    if (!given("factor") && !parameters_.section.raw("factor")) {
      reading_.warn("factor_missing", parameters_.section.where("factor") +
                                          " is missing: it is derived from the lengths, and "
                                          "transformers 5 refuses the file");
    }
    if (!parameters_.by_layer_type && family_.local.rope == LocalRope::same) return;
    const auto beside = parameters_.by_layer_type ? parameters_.whole.flag("truncate")
                                                  : std::optional<Found<bool>>();
    const bool read = !beside || beside->value;
    if (yarn->truncate == read) return;
    reading_.warn("truncate_unread", parameters_.section.where("truncate") +
                                         " is not read by transformers 5, which looks for it "
                                         "beside the layer types: the ramp is " +
                                         (read ? "rounded" : "not rounded"));
    yarn->truncate = read;
    std::erase_if(notes_, [](const Provenance& value) { return value.field == "truncate"; });
    note(notes_, "truncate", read ? "true" : "false", read ? Origin::family : Origin::file,
         beside ? beside->key : "default of Hugging Face");
  }

  bool same_as_config(const JsonMember& member) const {
    const Json* beside = config_.raw(member.key);
    return beside && beside->text() == member.value.text();
  }

  // Whether cosines are mixed, for which any of the keys stands.
  void read_mixture(RopeFound& found) {
    if (!family_.rope.mixes) return;
    const Section& p = parameters_.section;
    for (const std::string_view key : split(mixture_keys)) {
      const Json* const value = p.raw(key);
      if (value == nullptr || value->is_null()) continue;
      found.mixes = true;
      note(notes_, key, value->text(), Origin::file, p.where(key));
    }
    const std::int64_t pairs = ask_.head_dim / 2;
    const Range kept{.least = 0, .most = static_cast<double>(pairs)};
    if (const auto count = p.integer("num_inv_freq", kept)) found.mixed = count->value;
  }

  // " 1" of attn_factor 0.878 beside YaRN by 4, which multiplies by 1.139 itself.
  static std::string whole_factor(const Section& parameters) {
    const auto read = [&](std::string_view key) -> std::optional<double> {
      const Json* value = parameters.raw(key);
      if (value == nullptr) return std::nullopt;
      if (const auto* whole = value->get<std::int64_t>()) return static_cast<double>(*whole);
      const auto* real = value->get<double>();
      return real ? std::optional(*real) : std::nullopt;
    };
    const auto times = read("attn_factor"), s = read("factor");
    if (!times || !s || !(*s > 1) || !(*times > 0)) return {};
    constexpr double digits = 1e6;
    const double yarns = 0.1 * std::log(*s) + 1,
                 whole = std::round(*times * yarns * digits) / digits;
    return " " + number_text(whole) + " (" + number_text(std::round(*times * digits) / digits) +
           " × YaRN's own " + number_text(std::round(yarns * digits) / digits) + ")";
  }

  static constexpr std::string_view deepseek_keys = "beta_fast beta_slow mscale mscale_all_dim";

  void unknown(std::string_view key) {
    const Section& p = parameters_.section;
    if (family_.rope.mixes && contains_word(mixture_keys, key)) return;
    // Published files have these beside what they read, and nobody reads them there.
    if (key == "finetuned" && std::holds_alternative<Yarn>(rope_.scaling)) return;  // YaRN's own
    if (family_.rope.alpha && contains_word(deepseek_keys, key)) return;            // HunYuan's
    // Trainers keep the trained length beside a linear factor that it explains.
    if (key == "original_max_position_embeddings") {
      const auto trained = p.number(key, positive), factor = p.number("factor", positive),
                 whole = config_.number("max_position_embeddings");
      if (trained && whole && factor && trained->value * factor->value == whole->value) return;
    }
    if (key == "attn_factor") {
      reading_.warn("attn_factor",
                    p.where(key) +
                        " multiplies cos and sin in SGLang and in older vLLM, and has no "
                        "effect elsewhere; write attention_factor" +
                        whole_factor(p) + ", the whole of that factor");
      note(notes_, key, p.raw(key)->text(), Origin::file, p.where(key));
      return;
    }
    if (std::holds_alternative<Unscaled>(rope_.scaling) &&
        contains_word("scaling_type scale_type scaling_method method", key)) {
      reading_.warn("unknown_key", p.where(key) + " is " + p.raw(key)->text() +
                                       ", and nothing is scaled: the kind of a scaling is read as "
                                       "rope_type (type before), its number as factor");
      return;
    }
    reading_.warn("unknown_key", p.where(key) + " is not read by " +
                                     std::string(info(rope_.scaling).name) +
                                     " scaling and has no effect");
  }

  void read_lengths() {
    const FieldInfo* original = find_field(info(rope_.scaling), "original_max_position_embeddings");
    auto beside = config_.integer("original_max_position_embeddings",
                                  Range{.least = 1, .most = static_cast<double>(most_length)});
    if (!beside && family_.rope.original > 0) {
      beside = {family_.rope.original, "default of " + reading_.family};
    }
    if (original && beside && !parameters_.by_layer_type) {
      const auto inside = number_of(rope_.scaling, original->name);
      if (given(original->name) && inside != static_cast<double>(beside->value)) {
        reading_.warn("original_length_conflict",
                      beside->key + " is " + std::to_string(beside->value) + " and " +
                          parameters_.section.where(original->name) + " is " +
                          number_text(*inside) + "; the first is used, as Hugging Face does");
      }
      set(original->name, beside->value, Origin::file, beside->key);
    } else if (original && !given(original->name) && ask_.context > 0) {
      reading_.warn("original_length_missing", parameters_.section.where(original->name) +
                                                   " is missing: Hugging Face silently takes "
                                                   "max_position_embeddings, " +
                                                   std::to_string(ask_.context) +
                                                   "; write the trained length");
      set(original->name, ask_.context, Origin::derived,
          "max_position_embeddings, where it is not given");
    }
    if (find_field(info(rope_.scaling), "max_position_embeddings") && ask_.context > 0) {
      set("max_position_embeddings", ask_.context, Origin::derived, "the model's context");
    }
  }

  void set(std::string_view field, std::int64_t value, Origin origin, std::string_view detail) {
    if (reading_.error) return;
    if (const auto ok = set_field(rope_.scaling, field, value); !ok) {
      reading_.refuse(detail, ok.error().rule, std::to_string(value), ok.error().cure);
      return;
    }
    given_.push_back(std::string(field));
    note(notes_, field, std::to_string(value), origin, detail);
  }

  bool given(std::string_view field) const {
    return std::ranges::find(given_, field) != given_.end();
  }

  void require_fields() {
    for (const FieldInfo& field : info(rope_.scaling).fields) {
      if (reading_.error || !field.required || given(field.name)) continue;
      reading_.refuse(parameters_.section.where(field.name),
                      "is missing: " + std::string(info(rope_.scaling).name) + " scaling needs it",
                      "", std::string(field.doc));
    }
  }

  // -1 says in FlexBERT, from which ModernBERT is converted, that layers with a window have the base
  // of the others; transformers raises it to a power, and gets NaN.
  void refuse_base_of_flexbert() {
    if (!own_theta() || family_.local.theta_keys.empty()) return;
    const auto said = config_.number(family_.local.theta_keys);
    if (!said || said->value != -1) return;
    const auto of_full = config_.number(family_.rope.theta_keys, above_one);
    reading_.refuse(said->key, "must be a number above 1: every frequency is NaN", "-1",
                    "write " +
                        (of_full ? number_text(of_full->value) : "that of the other layers") +
                        ", which -1 stands for in FlexBERT");
  }

  // "rotary": {"base": 10000, "type": "origin"}, of the model's own code; the base of the type
  // "dynamic" grows.
  std::optional<Found<double>> base_of_rotary() const {
    const Json* const rotary = family_.rope.rotary_object ? config_.raw("rotary") : nullptr;
    const Json* const type = rotary ? rotary->find("type") : nullptr;
    const Json* const base = rotary ? rotary->find("base") : nullptr;
    if (!type || !base || type->text() != "\"origin\"") return std::nullopt;
    const auto* const whole = base->get<std::int64_t>();
    const auto* const number = base->get<double>();
    const double value = whole ? static_cast<double>(*whole) : number ? *number : 0;
    if (!(value > 1)) return std::nullopt;
    return Found<double>{value, config_.where("rotary") + ".base"};
  }

  void read_theta() {
    if (ask_.theta > 0) {
      rope_.rope_theta = ask_.theta;
      note(notes_, "rope_theta", number_text(ask_.theta), Origin::file,
           config_.where(config_.has("layer_rope_theta") ? "layer_rope_theta" : "rope_theta"));
      return;
    }
    std::optional<Found<double>> theta = parameters_.section.number("rope_theta", above_one);
    // A base within the parameters of all layers is also that of those that slide in ModernBERT
    // alone.
    const bool of_all = family_.local.rope == LocalRope::own_theta_scaled;
    if (unscaled_layer() || (own_theta() && !of_all && !parameters_.by_layer_type)) theta.reset();
    refuse_base_of_flexbert();
    const auto beside =
        config_.number(own_theta() ? family_.local.theta_keys : family_.rope.theta_keys, above_one);
    if (theta && beside && !parameters_.by_layer_type) {
      if (theta->value != beside->value)
        reading_.warn("theta_conflict", theta->key + " is " + number_text(theta->value) + " and " +
                                            beside->key + " is " + number_text(beside->value) +
                                            "; the first is used");
      note(notes_, "unused_rope_theta", number_text(beside->value), Origin::file, beside->key);
    }
    if (!theta) theta = beside;
    if (!theta) theta = base_of_rotary();
    if (theta) {
      rope_.rope_theta = theta->value;
      note(notes_, "rope_theta", number_text(theta->value), Origin::file, theta->key);
      ratio();
      return;
    }
    const bool old = reading_.saved_before(5);
    double fallback = own_theta() ? family_.local.theta : family_.rope.theta;
    const auto of_full = config_.number(family_.rope.theta_keys, above_one);
    if (own_theta() && family_.local.theta_keys.empty() && of_full && of_full->value != fallback) {
      reading_.warn("local_theta_fixed",
                    of_full->key +
                        " is not read for sliding layers by transformers 5, which takes " +
                        number_text(fallback) + "; before, it held for all layers" +
                        (old ? ", and does here, as in the version that saved the file" : ""));
      if (old) {
        rope_.rope_theta = of_full->value;
        note(notes_, "rope_theta", number_text(of_full->value), Origin::file, of_full->key);
        return;
      }
    }
    if (fallback == 0) {
      reading_.refuse(config_.where("rope_theta"),
                      "is missing and " + reading_.family + " has no default that one could mean",
                      "", "write the base the model was trained with");
      return;
    }
    if (family_.rope.theta_before != 0) {
      const auto [major, minor] = family_.rope.theta_changed;
      const bool earlier = reading_.saved_before(major, minor);
      reading_.warn("default_changed",
                    "rope_theta is not in the file: its default is " + number_text(fallback) +
                        ", and was " + number_text(family_.rope.theta_before) +
                        " before transformers " + std::to_string(major) +
                        (minor > 0 ? "." + std::to_string(minor) : "") +
                        (earlier ? ", which saved the file and holds; write it" : "; write it"));
      if (earlier) fallback = family_.rope.theta_before;
    }
    base_from_default_ = true;
    rope_.rope_theta = fallback;
    note(notes_, "rope_theta", number_text(fallback), Origin::family,
         "default of " + reading_.family);
    ratio();
  }

  // Which pairs such a scaling stretches follows from the base, and whoever wrote it knew the base.
  void warn_of_lost_base() {
    const bool counts_turns = std::holds_alternative<Yarn>(rope_.scaling) ||
                              std::holds_alternative<Llama3>(rope_.scaling) ||
                              std::holds_alternative<NtkByParts>(rope_.scaling);
    if (!base_from_default_ || !counts_turns || unscaled_layer() || defaults_ ||
        family_.rope.theta_before != 0)
      return;
    // Files that are older than the key, whose trained length is one that 10000 is for.
    constexpr double usual = 10000, longest = 4096;
    const auto original = number_of(rope_.scaling, "original_max_position_embeddings");
    if (std::holds_alternative<Yarn>(rope_.scaling) && rope_.rope_theta == usual && original &&
        *original <= longest)
      return;
    reading_.warn("base_from_default", config_.where("rope_theta") + " is missing beside " +
                                           std::string(info(rope_.scaling).name) +
                                           " scaling: the default of " + reading_.family + ", " +
                                           number_text(rope_.rope_theta) +
                                           ", is used; write the base the model was trained with");
  }

  // Keys by which other families say their base, or how much of a head rotates. One that says what
  // holds anyway does no harm.
  void warn_of_unread() {
    const auto warn = [&](std::string_view key, const Json& value, std::string_view own) {
      const std::string said = config_.where(key) + " is " + value.text() + ", which ",
                        code = "Hugging Face's code for " + reading_.family;
      if (own.empty())
        return reading_.warn("unread_key", said + code + " does not read; it has no effect");
      reading_.warn("foreign_name",
                    said + "is another program's name: " + code + " reads " + std::string(own) +
                        (base_from_default_ ? ", and runs its default, " : ", and runs ") +
                        number_text(rope_.rope_theta) + "; write " + std::string(own) + " " +
                        value.text() + " if the model was trained so");
    };
    const auto each = [&](std::string_view names, std::string_view read, double anyway,
                          bool of_base = false) {
      for (const std::string_view key : split(names)) {
        const Json* value = config_.raw(key);
        if (!value || value->is_null() || contains_word(read, key)) continue;
        if (ask_.theta > 0 && value->get<Json::Array>()) continue;  // a base for each layer
        const double* real = value->get<double>();
        const auto* whole = value->get<std::int64_t>();
        if ((real && *real == anyway) || (whole && static_cast<double>(*whole) == anyway)) continue;
        warn(key, *value, of_base && (real || whole) ? read.substr(0, read.find(' ')) : "");
      }
    };
    if (!own_theta()) each(any_theta, family_.rope.theta_keys, rope_.rope_theta, true);
    each(any_local_theta, family_.local.theta_keys, rope_.rope_theta);
    // Beside latent attention, whose rotary channels stand by themselves, it is that of layers with
    // linear attention.
    const bool of_other_layers =
        family_.attention.mla.rope > 0 && family_.layers.other == "linear_attention";
    if (of_other_layers)
      config_.raw("partial_rotary_factor");  // read, by layers that no plan has
    else
      each(any_partial, family_.slice.partial_keys, rope_.partial_rotary_factor);
    if (!family_.slice.reads_rotary_dim) {
      const double whole = static_cast<double>(ask_.head_dim) * rope_.partial_rotary_factor;
      each("rotary_dim", "",
           rope_.rotary_dim ? static_cast<double>(*rope_.rotary_dim) : std::floor(whole));
    }
  }

  // What the checkpoint's own code makes of these keys holds here, and transformers' class has its
  // defaults.
  void warn_of_own_code() {
    for (const std::string_view key : split(family_.rope.own_code)) {
      const Json* value = config_.raw(key);
      if (!value || value->is_null()) continue;
      if (const bool* const flag = value->get<bool>()) {
        if (!*flag) continue;
      } else {
        const bool base = contains_word(family_.rope.theta_keys, key);
        const auto number = config_.number(key);
        if (number && number->value == (base ? family_.rope.theta : family_.slice.partial))
          continue;
      }
      reading_.warn("own_code_key", config_.where(key) + " is " + value->text() +
                                        ": the code published with the weights reads it; "
                                        "transformers' own class for " +
                                        reading_.family + " does not");
    }
  }

  // RePo (arXiv 2512.14391): from a layer on, what each head says of a token is its position. The
  // authors' converter writes the first key as it is spelled here.
  void warn_of_repositioning() {
    const Section said = config_.section("pe_config");
    if (!said) return;
    const auto mode = said.word("dynamic_pe_mode");
    if (!mode || mode->value == "none") return;
    const auto from = said.integer("dynmaic_pe_start_layer dynamic_pe_start_layer");
    const std::string layer = std::to_string(from ? from->value : 0);
    reading_.warn("own_code_key",
                  mode->key + " is " + mode->value + ": layers from " + layer +
                      " on rotate at positions that each token and head says (RePo), and not at "
                      "ids; the plan is of those below, and the form repo makes the others' "
                      "angles");
  }

  // ChatGLM3 and GLM-4 multiply their base by rope_ratio, ChatGLM2's long model divides positions
  // by it; all are one model_type, so that only the name tells them apart.
  void ratio() {
    const auto stretch = config_.number(family_.rope.ratio_key, positive);
    if (!stretch || stretch->value == 1) return;
    const auto named = config_.word("_name_or_path");
    const std::string name = named ? small_letters(named->value) : "";
    if (name.contains("chatglm2") && std::holds_alternative<Unscaled>(rope_.scaling)) {
      rope_.scaling = Linear{.factor = stretch->value};
      std::erase_if(notes_, [](const Provenance& one) { return one.field == "rope_type"; });
      note(notes_, "factor", number_text(stretch->value), Origin::file, stretch->key);
      note(notes_, "rope_type", "linear", Origin::family,
           "ChatGLM2's own code divides positions by rope_ratio");
      return;
    }
    rope_.rope_theta *= stretch->value;
    note(notes_, "rope_theta", number_text(rope_.rope_theta), Origin::derived,
         "base × " + stretch->key);
    const auto words = config_.integer("padded_vocab_size");
    constexpr std::int64_t of_chatglm_2_and_3 = 65024;
    if (words && words->value == of_chatglm_2_and_3 && !name.contains("chatglm3"))
      reading_.warn("family_remark",
                    stretch->key + " is " + number_text(stretch->value) +
                        ": read as ChatGLM3 does, base × " + number_text(stretch->value) +
                        "; ChatGLM2's own code divides positions by it, and the file's "
                        "_name_or_path says neither");
  }

  // The part that rotates where the scaling has a field for it and the file none there: what stands
  // beside, or the family's default.
  void set_part_of_scaling(const std::optional<Found<double>>& beside) {
    if (reading_.error || (!beside && family_.slice.partial == 1)) return;
    const double part = beside ? beside->value : family_.slice.partial;
    const std::string from = beside ? beside->key : "default of " + reading_.family;
    const auto set = set_field(rope_.scaling, "partial_rotary_factor", part);
    if (!set) reading_.refuse(from, set.error().rule, set.error().got, set.error().cure);
    note(notes_, "partial_rotary_factor", number_text(part), beside ? Origin::file : Origin::family,
         from);
  }

  void read_rotary_dim() {
    auto inside = parameters_.section.number("partial_rotary_factor", fraction);
    if (inside && !family_.slice.partial_keys.empty() &&
        contains_word(family_.rope.own_code, family_.slice.partial_keys)) {
      if (inside->value != 1) {
        reading_.warn("unread_key", inside->key + " is " + number_text(inside->value) +
                                        ", which no code for " + reading_.family +
                                        " reads; it has no effect");
      }
      inside.reset();
    }
    const auto beside = config_.number(family_.slice.partial_keys, fraction);
    if (inside && beside && inside->value != beside->value) {
      const bool old = reading_.saved_before(5, 17) && config_.has("rope_scaling");
      reading_.warn(
          "partial_conflict",
          inside->key + " is " + number_text(inside->value) + " and " + beside->key + " is " +
              number_text(beside->value) +
              (old ? "; the second is used, as the version of transformers that saved the "
                     "file did: since 5.17 it is the first"
                   : "; the first is used, as transformers does since 5.17: before, the "
                     "second was where it stood beside rope_scaling"));
      if (old) inside.reset();
    }
    const auto& said = inside ? inside : beside;
    rope_.rotary_dim = ask_.rotary_dim;  // the caller noted why
    // A scaling that has the field itself (proportional) takes it, and the whole head is paired.
    if (find_field(info(rope_.scaling), "partial_rotary_factor")) {
      if (!inside) set_part_of_scaling(beside);
      return;
    }
    if (ask_.rotary_dim) return;
    const bool whole = family_.slice.partial_keys.empty() && family_.slice.partial == 1;
    if (whole) {
      // What has no effect must still be a part of a head.
      const auto unread = inside ? inside : config_.number(any_partial, fraction);
      if (unread && unread->value * static_cast<double>(ask_.head_dim) < 2) {
        reading_.refuse(unread->key, "leaves no pair of channels to rotate",
                        number_text(unread->value), "drop the key: whole heads rotate");
      }
      if (inside && inside->value != 1) {
        reading_.warn("unread_key", inside->key + " is " + number_text(inside->value) +
                                        ", and Hugging Face's code for " + reading_.family +
                                        " rotates whole heads; it has no effect");
      }
    }
    const auto dim = config_.integer(family_.slice.reads_rotary_dim ? "rotary_dim" : "",
                                     Range{.least = 2, .most = static_cast<double>(ask_.head_dim)});
    const bool agree =
        whole || !dim || !said ||
        static_cast<std::int64_t>(said->value * static_cast<double>(ask_.head_dim)) == dim->value;
    if (!agree) {
      reading_.warn("partial_conflict", dim->key + " is " + std::to_string(dim->value) + " and " +
                                            said->key + " is " + number_text(said->value) + " of " +
                                            std::to_string(ask_.head_dim) +
                                            " channels; the factor is used, as transformers does");
    }
    if (dim && agree) {
      rope_.rotary_dim = dim->value;
      note(notes_, "rotary_dim", std::to_string(dim->value), Origin::file, dim->key);
      return;
    }
    if (whole || (!said && family_.slice.partial == 1)) return;
    rope_.partial_rotary_factor = said ? said->value : family_.slice.partial;
    if (family_.slice.partial_disputed && said && said->value != 1) {
      reading_.warn("partial_disputed",
                    said->key + " is " + number_text(said->value) + ": that part of each head " +
                        "rotates here, as in vLLM; Hugging Face's code for " + reading_.family +
                        " rotates whole heads by the default rope, and fails by a scaled one");
    }
    note(notes_, "partial_rotary_factor", number_text(rope_.partial_rotary_factor),
         said ? Origin::file : Origin::family, said ? said->key : "default of " + reading_.family);
    if (said) warn_of_odd_part(said->key);
  }

  // Channels rotate in pairs, and the code of most families takes the part as it comes.
  void warn_of_odd_part(const std::string& key) {
    const auto channels =
        static_cast<std::int64_t>(static_cast<double>(ask_.head_dim) * rope_.partial_rotary_factor);
    if (channels % 2 == 0) return;
    reading_.warn("odd_rotary_part",
                  key + " " + number_text(rope_.partial_rotary_factor) + " of " +
                      std::to_string(ask_.head_dim) + " channels is " + std::to_string(channels) +
                      ", an odd number, and they rotate in pairs: transformers ends with sizes "
                      "that do not match");
  }

  void read_sections() {
    const Section& p = parameters_.section;
    if (family_.axes.alternating > 0) return alternate();
    auto sections = p.integers("mrope_section xdrope_section", not_negative);
    Origin origin = Origin::file;
    if (!sections) {
      if (family_.axes.sections.empty() || reading_.error) return;
      sections = Found<std::vector<std::int64_t>>{{}, "default of " + reading_.family};
      for (const std::string_view word : split(family_.axes.sections)) {
        int pairs = 0;
        std::from_chars(word.data(), word.data() + word.size(), pairs);
        sections->value.push_back(pairs);
      }
      origin = Origin::family;
    }
    if (family_.axes.of_pairs != nullptr) {
      rope_.pair_axes = family_.axes.of_pairs(sections->value);
    } else {
      rope_.mrope_section = sections->value;
    }
    std::string list;
    for (const std::int64_t pairs : sections->value)
      list += (list.empty() ? "" : ", ") + std::to_string(pairs);
    note(notes_, "mrope_section", "[" + list + "]", origin, sections->key);
    if (family_.axes.disputed && sections->value.size() > 1) {
      reading_.warn("sections_disputed",
                    sections->key +
                        " deals pairs to axes, as the model's first code, vLLM, mlx-vlm and "
                        "llama.cpp do; transformers 5.23 deals channels, each section doubled, so "
                        "that the two channels of a pair follow different axes, which is no "
                        "rotation; text is the same either way, pictures are not");
    }
    if (family_.axes.of_pairs != nullptr) return;
    const auto interleaved = p.flag("mrope_interleaved");
    rope_.mrope_interleaved = family_.axes.interleaved || (interleaved && interleaved->value);
    note(notes_, "mrope_interleaved", rope_.mrope_interleaved ? "true" : "false",
         interleaved ? Origin::file : Origin::family,
         interleaved ? interleaved->key : "rule of " + reading_.family);
  }

  // Axes that take pairs in turns are sections of one length, interleaved.
  void alternate() {
    const std::int64_t axes = family_.axes.alternating,
                       channels = rope_.rotary_dim.value_or(static_cast<std::int64_t>(
                           static_cast<double>(ask_.head_dim) * rope_.partial_rotary_factor)),
                       pairs = channels / 2;
    if (pairs % axes != 0 && !reading_.error)
      reading_.refuse(parameters_.section.where("partial_rotary_factor"),
                      "must leave each of " + std::to_string(axes) + " axes as many pairs",
                      std::to_string(pairs) + " pairs", "correct it or head_dim");
    rope_.mrope_section.assign(static_cast<std::size_t>(axes), pairs / axes);
    rope_.mrope_interleaved = true;
    note(notes_, "mrope_section", std::to_string(axes) + " axes take pairs in turns",
         Origin::family, "rule of " + reading_.family);
  }

  const Section& config_;
  Reading& reading_;
  const Family& family_;
  const RopeAsk& ask_;
  ProvenanceList& notes_;
  std::optional<Json> defaults_;  // the class's rope parameters; parameters_ may stand in them
  RopeParameters parameters_;
  Rope rope_;
  bool base_from_default_ = false;
  bool flatter_ = false;            // the type is the family's own word of YaRN
  std::string spelling_;            // that word
  std::string type_key_;            // where the type was said; "" if nowhere
  std::vector<std::string> given_;  // the scaling's fields that have been set
};

}  // namespace

RopeFound read_rope(const Section& config, const Family& family, const RopeAsk& ask,
                    ProvenanceList& notes) {
  return RopeReader(config, family, ask, notes).read();
}

}  // namespace posenc::detail
