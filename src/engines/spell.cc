// A rotation in an engine's words: keys of a configuration, or flags.
#include "src/engines/spell.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/files/field_value.h"
#include "src/model/compare.h"
#include "src/scalings/scaling.h"
#include "src/text/json_writer.h"
#include "src/text/shell.h"

namespace posenc::detail {
namespace {

using Kind = EngineNote::Kind;

// Says a scaling by a few words of its own, where others take any type and all of its fields.
bool has_few_words(Spelling spelling) {
  return spelling == Spelling::llama_flags || spelling == Spelling::megatron_flags ||
         spelling == Spelling::gguf_keys || spelling == Spelling::params;
}

void say(std::vector<EngineNote>& notes, Kind kind, std::string what) {
  EngineNote note{kind, std::move(what)};
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
}

// YaRN's own factor on cos and sin: 0.1 ln s + 1.
double own_amplitude(const Yarn& yarn) { return yarn_magnitude(yarn.factor.value_or(1)); }

// What it is, once attention_factor and the mscales are heard.
double amplitude_of(const Yarn& yarn) {
  if (yarn.attention_factor) return *yarn.attention_factor;
  if (!yarn.mscale || !yarn.mscale_all_dim) return own_amplitude(yarn);
  const double s = yarn.factor.value_or(1);
  return yarn_magnitude(s, *yarn.mscale) / yarn_magnitude(s, *yarn.mscale_all_dim);
}

bool is_latent(const LayerGroup& group) { return group.cache_note.contains("MLA"); }

std::int64_t rotary_dim_of(const Rope& rope, const Geometry& geometry) {
  if (rope.rotary_dim) return *rope.rotary_dim;
  return static_cast<std::int64_t>(static_cast<double>(geometry.head_dim) *
                                   rope.partial_rotary_factor);
}

// NTK-aware scaling is plain rotation by another base.
void say_by_base(Rope& rope, const Geometry& geometry, double ratio) {
  const auto base =
      stretched_base("translate", rope.rope_theta, rotary_dim_of(rope, geometry), ratio);
  if (!base) return;
  rope.rope_theta = *base;
  rope.scaling = Unscaled{};
}

void write_scaling(JsonWriter& out, const Scaling& scaling) {
  out.member("rope_type", info(scaling).name);
  for (const FieldSetting& setting : said_fields(scaling)) {
    out.key(setting.name);
    write(out, setting.value);
  }
}

void write_parameters(JsonWriter& out, const SpelledRope& one, bool with_base) {
  const Rope& rope = one.rope;
  out.object();
  write_scaling(out, rope.scaling);
  if (with_base) {
    out.member("rope_theta", rope.rope_theta);
    const double part = static_cast<double>(rotary_dim_of(rope, one.group->geometry)) /
                        static_cast<double>(one.group->geometry.head_dim);
    if (part != 1) out.member("partial_rotary_factor", part);
  }
  if (!rope.mrope_section.empty()) out.member("mrope_section", rope.mrope_section);
  if (rope.mrope_interleaved) out.member("mrope_interleaved", true);
  if (one.group->logits.beta != 0) {
    out.member("llama_4_scaling_beta", one.group->logits.beta);
  }
  out.end();
}

void write_rope_parameters(JsonWriter& out, const std::vector<SpelledRope>& ropes) {
  out.key("rope_parameters");
  if (ropes.size() == 1) {
    write_parameters(out, ropes.front(), true);
    return;
  }
  out.object();
  for (const SpelledRope& one : ropes) {
    out.key(one.layer_type);
    write_parameters(out, one, true);
  }
  out.end();
}

void write_rope_scaling(JsonWriter& out, const std::vector<SpelledRope>& ropes) {
  const SpelledRope& one = ropes.front();
  out.member("rope_theta", one.rope.rope_theta);
  const double part = static_cast<double>(rotary_dim_of(one.rope, one.group->geometry)) /
                      static_cast<double>(one.group->geometry.head_dim);
  if (part != 1) out.member("partial_rotary_factor", part);
  if (ropes.back().is_local) out.member("rope_local_base_freq", ropes.back().rope.rope_theta);
  // Phi's files have it beside the scaling too, and exllamav2 looks for it there alone.
  if (const auto* longrope = std::get_if<LongRope>(&one.rope.scaling))
    out.member("original_max_position_embeddings", longrope->original_max_position_embeddings);
  out.key("rope_scaling");
  if (std::holds_alternative<Unscaled>(one.rope.scaling) && one.rope.mrope_section.empty())
    out.null();
  else
    write_parameters(out, one, false);
}

std::string llama_flags(const Rope& rope, std::int64_t length) {
  std::string text = "--rope-freq-base " + number_text(rope.rope_theta);
  if (const auto* linear = std::get_if<Linear>(&rope.scaling)) {
    text += " --rope-scaling linear --rope-scale " + number_text(linear->factor);
  } else if (const auto* yarn = std::get_if<Yarn>(&rope.scaling)) {
    text += " --rope-scaling yarn --rope-scale " + number_text(yarn->factor.value_or(1)) +
            " --yarn-orig-ctx " + std::to_string(yarn->original_max_position_embeddings);
    if (yarn->beta_fast != 32) text += " --yarn-beta-fast " + number_text(yarn->beta_fast);
    if (yarn->beta_slow != 1) text += " --yarn-beta-slow " + number_text(yarn->beta_slow);
  } else if (std::holds_alternative<Unscaled>(rope.scaling)) {
    text += " --rope-scaling none";
  }
  return text + (length > 0 ? " -c " + std::to_string(length) : "");
}

// Multi-latent attention rotates its own channels, by arguments of its own.
std::string latent_flags(const Rope& rope) {
  const auto* yarn = std::get_if<Yarn>(&rope.scaling);
  std::string text = "--multi-latent-attention --rope-type ";
  text += yarn ? "yarn" : "rope";
  text += " --rotary-base " + number_text(rope.rope_theta);
  if (!yarn) return text;
  text += " --rotary-scaling-factor " + number_text(yarn->factor.value_or(1));
  if (yarn->mscale && yarn->mscale_all_dim)
    text += " --mscale " + number_text(*yarn->mscale) + " --mscale-all-dim " +
            number_text(*yarn->mscale_all_dim);
  return text;
}

std::string megatron_flags(const Rope& rope, const Geometry& geometry) {
  const bool is_yarn = std::holds_alternative<Yarn>(rope.scaling);
  const bool has_axes = !rope.mrope_section.empty() && !is_yarn;
  std::string text = "--position-embedding-type ";
  text += is_yarn ? "yarn" : has_axes ? "mrope" : "rope";
  if (has_axes) {
    text += " --mrope-section";
    for (const std::int64_t pairs : rope.mrope_section) text += " " + std::to_string(pairs);
  }
  text += " --rotary-base " + number_text(rope.rope_theta);
  const double part =
      static_cast<double>(rotary_dim_of(rope, geometry)) / static_cast<double>(geometry.head_dim);
  if (part != 1) text += " --rotary-percent " + number_text(part);
  if (rope.pairing == Pairing::interleaved) text += " --rotary-interleaved";
  if (const auto* linear = std::get_if<Linear>(&rope.scaling))
    text += " --rotary-seq-len-interpolation-factor " + number_text(linear->factor);
  if (const auto* llama3 = std::get_if<Llama3>(&rope.scaling))
    text += " --use-rope-scaling --rope-scaling-factor " + number_text(llama3->factor);
  if (const auto* yarn = std::get_if<Yarn>(&rope.scaling)) {
    text += " --yarn-rotary-scaling-factor " + number_text(yarn->factor.value_or(1)) +
            " --yarn-original-max-position-embeddings " +
            std::to_string(yarn->original_max_position_embeddings) + " --yarn-beta-fast " +
            number_text(yarn->beta_fast) + " --yarn-beta-slow " + number_text(yarn->beta_slow);
    if (yarn->mscale && yarn->mscale_all_dim)
      text += " --mscale " + number_text(*yarn->mscale) + " --mscale-all-dim " +
              number_text(*yarn->mscale_all_dim);
    if (!yarn->truncate) text += " --no-yarn-correction-range-round-to-int";
  }
  return text;
}

void write_gguf_keys(JsonWriter& out, const std::vector<SpelledRope>& ropes) {
  const SpelledRope& one = ropes.front();
  const Rope& rope = one.rope;
  out.member("rope.freq_base", rope.rope_theta);
  if (ropes.back().is_local) out.member("rope.freq_base_swa", ropes.back().rope.rope_theta);
  out.member("rope.dimension_count", rotary_dim_of(rope, one.group->geometry));
  if (!rope.mrope_section.empty()) {
    std::vector<std::int64_t> four = rope.mrope_section;
    four.resize(4);
    out.member("rope.dimension_sections", four);
  }
  if (const auto* linear = std::get_if<Linear>(&rope.scaling)) {
    out.member("rope.scaling.type", "linear").member("rope.scaling.factor", linear->factor);
  } else if (const auto* yarn = std::get_if<Yarn>(&rope.scaling)) {
    out.member("rope.scaling.type", "yarn")
        .member("rope.scaling.factor", yarn->factor.value_or(1))
        .member("rope.scaling.original_context_length", yarn->original_max_position_embeddings);
    if (yarn->beta_fast != 32) out.member("rope.scaling.yarn_beta_fast", yarn->beta_fast);
    if (yarn->beta_slow != 1) out.member("rope.scaling.yarn_beta_slow", yarn->beta_slow);
    // llama.cpp multiplies YaRN's own factor by it.
    if (yarn->attention_factor)
      out.member("rope.scaling.attn_factor", *yarn->attention_factor / own_amplitude(*yarn));
    if (yarn->mscale_all_dim)
      out.member("rope.scaling.yarn_log_multiplier",
                 *yarn->mscale_all_dim / (is_latent(*one.group) ? 10 : 1));
  } else if (std::holds_alternative<Unscaled>(rope.scaling)) {
    out.member("rope.scaling.type", "none");
  }
}

void write_params(JsonWriter& out, const SpelledRope& one) {
  out.member("rope_theta", one.rope.rope_theta);
  if (const auto* yarn = std::get_if<Yarn>(&one.rope.scaling)) {
    out.key("yarn")
        .object()
        .member("factor", yarn->factor.value_or(1))
        .member("original_max_position_embeddings", yarn->original_max_position_embeddings)
        .member("beta", yarn->beta_fast)
        .member("alpha", yarn->beta_slow)
        .member("apply_scale", !yarn->attention_factor)
        .end();
  }
  if (const Logits& logits = one.group->logits; logits.beta != 0)
    out.key("llama_4_scaling")
        .object()
        .member("beta", logits.beta)
        .member("original_max_position_embeddings", static_cast<std::int64_t>(logits.floor))
        .end();
}

// A scaling that keys of a GGUF have no word for is in tensors of the file, or nowhere.
void say_for_gguf(const Model& model, const LayerGroup& group, Rope& rope,
                  std::vector<EngineNote>& notes) {
  auto* yarn = std::get_if<Yarn>(&rope.scaling);
  if (!yarn) {
    if (!std::holds_alternative<Unscaled>(rope.scaling) &&
        !std::holds_alternative<Linear>(rope.scaling))
      say(notes, Kind::approximated,
          std::string(info(rope.scaling).name) +
              " has no keys: the converter writes it into the file as tensors");
    return;
  }
  constexpr std::string_view with_keys[] = {"grok", "mistral3", "ministral3"};
  const bool has_keys = std::ranges::find(with_keys, model.family) != std::end(with_keys);
  if (!has_keys && (yarn->beta_fast != 32 || yarn->beta_slow != 1)) {
    say(notes, Kind::lost,
        "beta_fast and beta_slow: llama.cpp reads their keys for grok and mistral3 alone "
        "(--yarn-beta-fast and --yarn-beta-slow set them)");
    yarn->beta_fast = 32;
    yarn->beta_slow = 1;
  }
  // yarn_log_multiplier has the mscales where they touch the logits besides.
  if (is_latent(group) || (has_keys && yarn->mscale_all_dim)) return;
  const double amplitude = amplitude_of(*yarn);
  yarn->mscale.reset();
  yarn->mscale_all_dim.reset();
  yarn->attention_factor.reset();
  if (amplitude != own_amplitude(*yarn)) yarn->attention_factor = amplitude;
}

// MLATransformerConfig has these fields, and no argument sets them.
void say_for_latent(const LayerGroup& group, Yarn* yarn, std::vector<EngineNote>& notes) {
  if (!is_latent(group) || !yarn) return;
  if (yarn->beta_fast == 32 && yarn->beta_slow == 1 &&
      yarn->original_max_position_embeddings == 4096)
    return;
  say(notes, Kind::lost,
      "no argument of latent attention says beta_fast, beta_slow or the trained length: 32, 1 and "
      "4096 hold");
  yarn->beta_fast = 32;
  yarn->beta_slow = 1;
  yarn->original_max_position_embeddings = 4096;
}

// Of all scalings params.json has YaRN alone, with its own factor on cos and sin or with none.
void say_for_params(const LayerGroup& group, Rope& rope, std::vector<EngineNote>& notes) {
  if (!rope.mrope_section.empty()) {
    say(notes, Kind::lost, "mrope_section: params.json has no key");
    rope.mrope_section.clear();
    rope.mrope_interleaved = false;
  }
  if (!is_latent(group) && rotary_dim_of(rope, group.geometry) != group.geometry.head_dim) {
    say(notes, Kind::lost, "a part of the head: params.json rotates all of it");
    rope.rotary_dim.reset();
    rope.partial_rotary_factor = 1;
  }
  auto* yarn = std::get_if<Yarn>(&rope.scaling);
  if (!yarn) {
    if (std::holds_alternative<Unscaled>(rope.scaling)) return;
    say(notes, Kind::lost,
        std::string(info(rope.scaling).name) + ": params.json knows no scaling but yarn");
    rope.scaling = Unscaled{};
    return;
  }
  const double amplitude = amplitude_of(*yarn);
  yarn->mscale.reset();
  yarn->mscale_all_dim.reset();
  yarn->attention_factor.reset();
  if (amplitude == 1)
    yarn->attention_factor = 1;
  else if (amplitude != own_amplitude(*yarn))
    say(notes, Kind::lost,
        "the factor " + number_text(amplitude) +
            " on cos and sin: apply_scale has YaRN's own, or none");
  if (!yarn->truncate)
    say(notes, Kind::approximated, "truncate false: the ramp's ends are rounded to whole pairs");
  yarn->truncate = true;
}

}  // namespace

SpelledRope sayable(const Model& model, const LayerGroup& group, Spelling spelling,
                    std::int64_t length, std::vector<EngineNote>& notes) {
  SpelledRope one{&group, {}, group.window ? "sliding_attention" : "full_attention"};
  for (const Scheme& scheme : group.schemes)
    if (const Rope* rope = std::get_if<Rope>(&scheme)) one.rope = *rope;
  Rope& rope = one.rope;
  const Geometry& geometry = group.geometry;
  if (!rope.frequency_factors.empty()) {
    say(notes, Kind::lost,
        "frequency_factors: only tensors of a GGUF have them (rope_freqs.weight)");
    rope.frequency_factors.clear();
  }
  if (rope.rotated_heads)
    say(notes, Kind::lost, "rotated_heads: no key says that some heads do not rotate");
  if (rope.rotate_values) say(notes, Kind::lost, "rotate_values: no key says that values rotate");
  rope.rotated_heads.reset();
  rope.rotate_values = rope.values_stay = false;
  rope.pair_axes
      .clear();  // which axis a pair takes is in the family's own code, and no key says it
  if (const auto* ntk = std::get_if<NtkAware>(&rope.scaling))
    say_by_base(rope, geometry, ntk->factor);
  if (auto* yarn = std::get_if<Yarn>(&rope.scaling)) {
    if (!yarn->factor && yarn->max_position_embeddings)
      yarn->factor = static_cast<double>(*yarn->max_position_embeddings) /
                     static_cast<double>(yarn->original_max_position_embeddings);
    if (yarn->beta_fast == 0) yarn->beta_fast = 32;
    if (yarn->beta_slow == 0) yarn->beta_slow = 1;
  }
  if (const auto* parts = std::get_if<NtkByParts>(&rope.scaling)) {
    say(notes, Kind::approximated,
        "ntk_by_parts is said as yarn, whose ramp counts pairs and not turns");
    rope.scaling = Yarn{.factor = parts->factor,
                        .original_max_position_embeddings = parts->original_max_position_embeddings,
                        .beta_fast = parts->beta,
                        .beta_slow = parts->alpha,
                        .attention_factor = 1};
  }
  if (!engines_have(rope.scaling)) {
    say(notes, Kind::lost, std::string(info(rope.scaling).title) + ": no engine has it");
    rope.scaling = Unscaled{};
  }
  if (!has_few_words(spelling)) return one;

  if (const auto* dynamic = std::get_if<DynamicNtk>(&rope.scaling)) {
    const double s = dynamic->factor, most = static_cast<double>(dynamic->max_position_embeddings);
    say(notes, Kind::fixed,
        "dynamic: the base for " + std::to_string(length) + " tokens, at every length");
    say_by_base(rope, geometry, std::max(1.0, s * static_cast<double>(length) / most - (s - 1)));
  }
  if (spelling == Spelling::params) {
    say_for_params(group, rope, notes);
    return one;
  }
  auto* yarn = std::get_if<Yarn>(&rope.scaling);
  if (spelling != Spelling::gguf_keys && yarn && yarn->attention_factor) {
    say(notes, Kind::lost,
        "attention_factor " + number_text(*yarn->attention_factor) +
            ": no flag keeps it under YaRN");
    yarn->attention_factor.reset();
  }
  if (spelling == Spelling::megatron_flags) {
    say_for_latent(group, yarn, notes);
    return one;
  }
  if (yarn && !yarn->truncate) {
    say(notes, Kind::approximated, "truncate false: the ramp's ends are rounded to whole pairs");
    yarn->truncate = true;
  }
  if (spelling == Spelling::gguf_keys) {
    say_for_gguf(model, group, rope, notes);
  } else {
    if (std::holds_alternative<Llama3>(rope.scaling) ||
        std::holds_alternative<LongRope>(rope.scaling) ||
        std::holds_alternative<Proportional>(rope.scaling))
      say(notes, Kind::approximated,
          std::string(info(rope.scaling).name) +
              " has no flags: the converter writes it into the file as tensors, which the flags "
              "leave alone");
  }
  return one;
}

std::vector<FieldSetting> said_fields(const Scaling& scaling) {
  std::vector<FieldSetting> said;
  for (FieldSetting& setting : settings(scaling)) {
    const bool* flag = std::get_if<bool>(&setting.value);
    const bool ours = setting.name == "scale_logits" || setting.name == "dynamic" ||
                      setting.name == "max_position_embeddings";
    const bool usual = setting.name == "truncate" && flag && *flag;
    if (!ours && !usual && !std::holds_alternative<std::monostate>(setting.value))
      said.push_back(std::move(setting));
  }
  return said;
}

std::string old_vllm_flags(const std::vector<SpelledRope>& ropes, std::int64_t length,
                           std::vector<EngineNote>& notes) {
  using Kind = EngineNote::Kind;
  const SpelledRope& one = ropes.front();
  say(notes, Kind::approximated,
      "vLLM before 0.11.1, in flags that it has dropped: read back as newer ones read "
      "rope_parameters");
  if (!parts_around(*one.group).empty())
    say(notes, Kind::lost, "text_config: these flags reach the top of the file alone");
  if (ropes.size() > 1)
    say(notes, Kind::lost,
        "layers of several kinds: base and scaling hold for one of them, that of " +
            one.layer_type);
  std::string flags = "--rope-theta " + number_text(one.rope.rope_theta);
  if (std::holds_alternative<Unscaled>(one.rope.scaling)) {
    say(notes, Kind::approximated, "a scaling that the file has stays: no flag takes it away");
  } else {
    JsonWriter json;
    write_parameters(json, one, false);
    flags = "--rope-scaling " + shell_word(json.text) + " " + flags;
  }
  return length > 0 ? flags + " --max-model-len " + std::to_string(length) : flags;
}

std::string spelled(const std::vector<SpelledRope>& ropes, Spelling spelling, std::int64_t context,
                    std::int64_t length, std::vector<EngineNote>& notes) {
  const SpelledRope& one = ropes.front();
  const auto several = [&] {
    if (ropes.size() > 1 && (!ropes.back().is_local || spelling == Spelling::params))
      say(notes, Kind::lost,
          "layers of several kinds: base and scaling hold for one of them, that of " +
              one.layer_type);
  };
  JsonWriter json;
  const auto with_context = [&](std::string_view key) {
    if (context > 0) json.member(key, context);
    json.end();
    return json.text;
  };
  // Flags that override the configuration and its length.
  const auto overriding = [&](std::string flag, std::string_view length_flag) {
    const std::vector<std::string_view> parts = parts_around(*one.group);
    json.object();
    write_rope_parameters(json, ropes);
    // Beside YaRN both serve max_position_embeddings as it stands and refuse a longer length (vLLM
    // from 0.30 on), as they do without a scaling.
    const Scaling& scaling = one.rope.scaling;
    const bool as_it_stands = std::holds_alternative<Yarn>(scaling) ||
                              std::holds_alternative<Llama3>(scaling) ||
                              std::holds_alternative<Unscaled>(scaling);
    if (as_it_stands && length > 0 && length >= context)
      json.member("max_position_embeddings", length);
    json.end();
    flag += shell_word(within_parts(parts, json.text));
    return length > 0 ? flag.append(length_flag) + std::to_string(length) : flag;
  };
  switch (spelling) {
    case Spelling::rope_parameters:
      write_rope_parameters(json.object(), ropes);
      return with_context("max_position_embeddings");
    case Spelling::rope_scaling:
      several();
      write_rope_scaling(json.object(), ropes);
      return with_context("max_position_embeddings");
    case Spelling::vllm_flags: return overriding("--hf-overrides ", " --max-model-len ");
    case Spelling::sglang_flags:
      return overriding("--json-model-override-args ", " --context-length ");
    case Spelling::llama_flags: return llama_flags(one.rope, length);
    case Spelling::gguf_keys:
      several();
      write_gguf_keys(json.object(), ropes);
      return with_context("context_length");
    case Spelling::params:
      several();
      write_params(json.object(), one);
      return with_context("max_position_embeddings");
    case Spelling::megatron_flags:
      several();
      return is_latent(*one.group) ? latent_flags(one.rope)
                                   : megatron_flags(one.rope, one.group->geometry);
  }
  return {};
}

}  // namespace posenc::detail
