// What deserves a look in a model's file: everything that reading it warned of, what engines do
// otherwise, and what a conversion leaves behind.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/engine_readings.h"
#include "src/tools/recipes.h"

namespace posenc {
namespace {

struct LintRule {
  std::string_view code;
  Severity severity;
  std::string_view cure;
};

using enum Severity;

// Every code of docs/warnings.md. An error is a file that says two things, or what no engine can do
// as it says.
constexpr LintRule lint_rules[] = {
    {"beyond_context", warning, "add a scaling, or ask for less"},
    {"stale_keys", warning,
     "prompt and answer together within the shorter length, or a prompt that begins beyond it; an "
     "engine that keeps one rotation for a text (vLLM 0.11.1 and later, llama.cpp)"},
    {"sentence_length", note,
     "write the model's own length into sentence_bert_config.json, where longer texts are wanted"},
    {"length_dependent", note, "choose one length and say it with --at"},
    {"factor_vs_lengths", warning, "correct the factor or the lengths, whichever is wrong"},
    {"context_below_reach", note, ""},
    {"context_key", note, "write max_position_embeddings as well"},
    {"original_is_max", warning,
     "write the length that was trained as original_max_position_embeddings; where that is "
     "the context, multiply max_position_embeddings by the factor"},
    {"trained_length_kept", note, ""},
    {"original_length_missing", error, "write original_max_position_embeddings"},
    {"original_length_conflict", error, "keep one of the two trained lengths"},
    {"factor_missing", error, "write the factor"},
    {"factor_below_one", warning, "write the inverse, if the context should grow"},
    {"equal_factors", warning,
     "write the factors that it was trained with: Llama 3.1 to 3.3 publish 1 and 4"},
    {"betas_reversed", error, "exchange beta_fast and beta_slow"},
    {"zero_beta", warning, "drop the key"},
    {"attention_factor_given", warning,
     "check that your engine reads it: posenc diff FILE --engines all"},
    {"attn_factor", error, "write attention_factor, the whole factor on cos and sin"},
    {"mscale_alone", warning, "write both mscale and mscale_all_dim, or neither"},
    {"mscales_unread", error, "write attention_factor, or drop the keys"},
    {"alpha_of_hunyuan", error, "use type ntk with a factor"},
    {"long_factor_unread", warning, "check the engine you serve with"},
    {"gguf_key_not_read", note, ""},
    {"gguf_rotary_dim_defaulted", warning,
     "convert again, or --override-kv ARCH.rope.dimension_count=int:CHANNELS (ARCH as "
     "general.architecture says)"},
    {"gguf_log_multiplier", warning,
     "convert again, or --override-kv ARCH.rope.scaling.yarn_log_multiplier=float:0.1 (ARCH as "
     "general.architecture says; 0.0707 of DeepSeek-V2, whose mscale_all_dim is 0.707)"},
    {"gguf_key_out_of_range", warning, "convert again, or write 1"},
    {"sections_count", warning, "take a GGUF that llama.cpp's converter made"},
    {"truncate_unread", warning, "move truncate beside the layer types"},
    {"base_from_default", error, "write rope_theta"},
    {"default_changed", error, "write rope_theta"},
    {"theta_conflict", error, "keep one of the two bases"},
    {"local_theta_fixed", note, ""},
    {"partial_conflict", error, "keep one of the two"},
    {"odd_rotary_part", error, "take a part that is an even number of channels"},
    {"partial_disputed", warning, "check the engine you serve with"},
    {"sections_disputed", warning, "check the engine you serve with"},
    {"own_code", note, "compare posenc explain with that code"},
    {"own_code_key", warning, "check which of the two you run"},
    {"unknown_key", warning, "correct its spelling, or drop the key"},
    {"unread_key", warning, "drop the key, or correct model_type"},
    {"foreign_name", warning, "write the key that is read"},
    {"misspelt_key", error, "rename it"},
    {"foreign_key", warning, "drop the key, or correct model_type"},
    {"ignored_key", warning, "check with the model's own code"},
    {"layer_list_unread", warning, "read the model's own code: what the entries mean is there"},
    {"layer_types_unread", error, "write the parameters flat"},
    {"flat_parameters", error, "write an entry for each layer type"},
    {"null_parameters", warning, ""},
    {"old_type", error, "write rope_type"},
    {"gguf_missing_rope_factors", error, "convert again"},
    {"tensors_not_listed", note, "give the GGUF"},
    {"window_switched_off", warning, "set use_sliding_window, or drop the layer types"},
    {"files_disagree", error, "correct the file that is wrong"},
    {"file_not_read", error, "mend the file, or remove it"},
    {"file_cut_off", error, "download the rest"},
    {"two_spellings", error, "keep rope_scaling or rope_parameters"},
    {"spellings_disagree", error, "keep one of them"},
    {"lengths_differ", note, ""},
    {"type_conflict", error, "keep rope_type"},
    {"causal_chunks", warning, "check the family"},
    {"type_from_class", warning, "write model_type"},
    {"unknown_family", note, "check what explain marks as assumed"},
    {"family_remark", note, ""},
    {"told_by_tensors", note, ""},
    {"size_from_default", note, "write the size"},
    {"baichuan_by_size", note, ""},
    {"vision_not_explained", note, ""},
    {"audio_not_explained", note, ""},
    {"tower_remark", note, ""},
    {"table_missing", note, "give the table"},
    {"table_shape", error, "correct the tensor or the configuration"},
    {"table_differs", warning, "name one of the tensors"},
    {"weights_not_read", warning, "mend the file, or remove it"},
    {"table_type", warning, "convert the tensor"},
    {"rows_vs_context", warning, "correct the key"},
};

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

const LintRule* rule_of(const Warning& warning) {
  const auto rule = std::ranges::find(lint_rules, warning.code, &LintRule::code);
  return rule == std::end(lint_rules) ? nullptr : rule;
}

Finding as_finding(const Warning& warning) {
  Finding finding{
      .code = warning.code, .severity = severity_of(warning), .message = warning.message};
  const LintRule* const rule = rule_of(warning);
  if (rule == nullptr) return finding;
  finding.cure = rule->cure;
  // Where the message ends with the cure, that one names the file's own keys and values.
  const std::size_t at = warning.message.rfind("; ");
  if (at == warning.message.npos || rule->cure.empty()) return finding;
  const std::string_view end = std::string_view(warning.message).substr(at + 2);
  if (first_word(end) != first_word(rule->cure)) return finding;
  finding.cure = end;
  finding.message.resize(at);
  return finding;
}

// What a converter can lose without a trace in the file itself.
void lint_gguf(const Model& model, std::vector<Finding>& findings) {
  const auto base_of = [](const LayerGroup& group) -> const Provenance* {
    const auto at = std::ranges::find(group.provenance, "rope_theta", &Provenance::field);
    return at == group.provenance.end() ? nullptr : &*at;
  };
  // No model of these has another base than llama.cpp's 10000, and their converters write none.
  constexpr std::string_view without_base[] = {"gemma", "gemma2", "phi2"};
  if (std::ranges::find(without_base, model.family) != std::end(without_base)) return;
  // A file that has the base leaves out only what its architecture fixes: that of layers which
  // slide.
  for (const LayerGroup& group : model.groups)
    if (const Provenance* base = base_of(group); base && base->origin == Origin::file) return;
  for (const LayerGroup& group : model.groups) {
    if (!detail::rope_of(group)) continue;
    if (const Provenance* base = base_of(group))
      findings.push_back(
          {.code = "gguf_theta_defaulted",
           .severity = Severity::warning,
           .stack = group.stack,
           .layers = group.layers,
           .found = base->value,
           .message = "the file has no rope.freq_base, so llama.cpp takes " + base->value,
           .cure = "compare with the model's config.json: posenc diff config.json FILE"});
  }
}

// Gemma 3 from 4B on divides positions of full layers by 8; a converter of before, or one that
// writes YaRN alone, loses it.
void lint_lost_division(const Model& model, std::vector<Finding>& findings) {
  const std::int64_t layers = detail::layers_of(model, Stack::text);
  constexpr std::int64_t of_4b = 34, of_12b = 48, of_27b = 62;
  if (model.family != "gemma3" || (layers != of_4b && layers != of_12b && layers != of_27b)) return;
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = detail::rope_of(group);
    if (!rope || group.window || is_tower(group.stack) ||
        !std::holds_alternative<Unscaled>(rope->scaling))
      continue;
    findings.push_back({.code = "gguf_scaling_missing",
                        .severity = Severity::warning,
                        .stack = group.stack,
                        .layers = group.layers,
                        .message = "models of this size divide the positions of layers that see "
                                   "everything by 8, and the file has no rope.scaling.factor: "
                                   "long texts fall apart or repeat",
                        .cure = "convert again by llama.cpp's converter, or --override-kv "
                                "gemma3.rope.scaling.type=str:linear --override-kv "
                                "gemma3.rope.scaling.factor=float:8"});
  }
}

// Every published Gemma 3 rotates the layers that slide by 10,000 and the others by 1,000,000:
// whoever has one base for all lost the other.
void lint_gemma3_bases(const Model& model, bool gguf, std::vector<Finding>& findings) {
  constexpr double slides = 1e4, sees_all = 1e6;
  if (!model.family.starts_with("gemma3")) return;
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = detail::rope_of(group);
    if (!rope || is_tower(group.stack)) continue;
    const double own = group.window ? slides : sees_all, other = group.window ? sees_all : slides;
    if (rope->rope_theta != other) continue;
    const std::string architecture = model.family.starts_with("gemma3n") ? "gemma3n" : "gemma3",
                      key = gguf ? architecture + ".rope.freq_base" + (group.window ? "_swa" : "")
                            : group.window ? "rope_local_base_freq"
                                           : "rope_theta";
    findings.push_back(
        {.code = "base_of_other_layers",
         .severity = Severity::error,
         .stack = group.stack,
         .layers = group.layers,
         .position = 1,
         .expected = detail::grouped(std::llround(own)),
         .found = detail::grouped(std::llround(other)),
         .message = std::string(group.window ? "layers that slide" : "layers that see everything") +
                    " rotate by base " + number_text(own) +
                    " in every published Gemma 3, and here by that of the others: text falls apart "
                    "within some hundred tokens",
         .cure = gguf ? "convert again, or --override-kv " + key + "=float:" + number_text(own)
                      : "write " + key + " " + number_text(own)});
  }
}

// A conversion that lost Llama 3.1's scaling.
void lint_llama3(const Model& model, bool gguf, std::vector<Finding>& findings) {
  const bool not_told = std::ranges::find(model.warnings, "tensors_not_listed", &Warning::code) !=
                        model.warnings.end();
  if (not_told) return;
  for (const LayerGroup& group : model.groups) {
    if (!detail::lacks_scaling_of_llama3(model, group)) continue;
    findings.push_back(
        {.code = gguf ? "gguf_missing_rope_freqs" : "llama3_scaling_missing",
         .severity = Severity::warning,
         .stack = group.stack,
         .layers = group.layers,
         .position = 113,
         .message = "base 500000 and a context of " + detail::grouped(model.context) + " without " +
                    (gguf ? "rope_freqs.weight" : "rope_scaling") +
                    ": if this is Llama 3.1 or later, the conversion lost its scaling",
         .cure = gguf ? "compare with the model's config.json, and convert again: posenc diff "
                        "config.json FILE"
                      : "write the rope_scaling of the published file: posenc diff llama-3.1-8b "
                        "FILE"});
  }
}

// No model with this scaling was released with the base that classes fall back to.
void lint_llama3_base(const Model& model, std::vector<Finding>& findings) {
  constexpr double class_default = 10000;
  // A base that is not there is told already.
  if (std::ranges::find(model.warnings, "base_from_default", &Warning::code) !=
      model.warnings.end())
    return;
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = detail::rope_of(group);
    if (!rope || rope->rope_theta != class_default ||
        !std::holds_alternative<Llama3>(rope->scaling))
      continue;
    findings.push_back(
        {.code = "llama3_base",
         .severity = Severity::warning,
         .stack = group.stack,
         .layers = group.layers,
         .found = "10000",
         .message = "Llama 3's scaling beside base 10000, which is what a class falls back to: "
                    "models with this scaling were trained with 500000, and programs that write "
                    "configurations of two versions of transformers lose it",
         .cure = "rope_theta as the published file has it: posenc diff llama-3.1-8b FILE"});
  }
}

// A published recipe whose file keeps the shorter length is no slip; some versions of transformers 4
// took the ratio of the lengths for the factor.
void lint_recipe(const Model& model, const LintOptions& options, std::vector<Finding>& findings) {
  const detail::Recipe* recipe = detail::recipe_between(model, model);
  if (!recipe) return;
  const bool of_old_transformers = std::ranges::any_of(
      options.engines,
      [](const std::string& engine) { return engine.starts_with("transformers@4"); });
  for (Finding& finding : findings) {
    if (finding.code != "factor_vs_lengths") continue;
    const std::string reached = number_text(recipe->factor * static_cast<double>(recipe->trained));
    finding.severity = of_old_transformers ? Severity::warning : Severity::note;
    const std::string beside = "max_position_embeddings " + std::to_string(model.context) +
                               " beside factor " + number_text(recipe->factor) + " is what " +
                               std::string(recipe->source) + " have";
    constexpr std::string_view by_ratio =
        "transformers 4.51 and its neighbours take the ratio of the lengths for the factor, and "
        "scale by less";
    finding.message = of_old_transformers ? std::string(by_ratio) + "; " + beside
                                          : beside + "; " + std::string(by_ratio);
    finding.cure = "for these write max_position_embeddings " + reached;
  }
}

bool lost_factors(const Model& model) {
  return std::ranges::find(model.warnings, "gguf_missing_rope_factors", &Warning::code) !=
         model.warnings.end();
}

// DeepSeek-R1-Distill-Qwen-1.5B and 7B.
bool is_qwen_of_deepseek_r1(const Model& model, const LayerGroup& group) {
  constexpr std::int64_t promised = 131072, layers = 28, of_small = 1536, of_large = 3584;
  return model.family == "qwen2" && model.context == promised &&
         detail::layers_of(model, Stack::text) == layers &&
         (group.geometry.width == of_small || group.geometry.width == of_large);
}

// A file may claim any length. Without a scaling the usual base of 10,000 carries what models were
// trained on with it, up to 32,768 tokens; those that reach further leave a part of each head still
// (GLM-4), or slide a window.
void lint_claimed_context(const Model& model, std::vector<Finding>& findings) {
  constexpr double usual_base = 10000;
  constexpr std::int64_t longest_known = 32768;
  if (model.context <= longest_known) return;
  // The file lost what was made for that length, and it is told; a published one means what it says.
  if (lost_factors(model) || model.origin.starts_with("published")) return;
  const bool windows = std::ranges::any_of(
      model.groups, [](const LayerGroup& group) { return group.window || is_tower(group.stack); });
  if (windows) return;
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = detail::rope_of(group);
    if (!rope || rope->rope_theta > usual_base || !rope->frequency_factors.empty() ||
        !std::holds_alternative<Unscaled>(rope->scaling))
      continue;
    const auto plan = compile(group);
    if (!plan || !plan->rotate || 2 * plan->rotate->pairs() < group.geometry.head_dim) continue;
    const bool of_deepseek = is_qwen_of_deepseek_r1(model, group);
    findings.push_back(
        {.code = "claimed_context",
         .severity = of_deepseek ? Severity::note : Severity::warning,
         .stack = group.stack,
         .layers = group.layers,
         .expected = "a larger base, or a scaling",
         .found = "base " + number_text(rope->rope_theta) + ", none",
         .message = "the file claims " + detail::grouped(model.context) +
                    " tokens, and neither its base nor a scaling is made for them: " +
                    (of_deepseek ? "so DeepSeek publishes R1's copies of Qwen2.5-Math, which were "
                                   "taught with answers of up to 32,768"
                                 : "a merge or an edit may have raised the number alone"),
         .cure = of_deepseek ? ""
                             : "compare it with the file of the model that it was made of: "
                               "posenc diff BASE FILE"});
  }
}

// Engines that make the same of it stand in one finding.
void add_for_engine(std::vector<Finding>& findings, Finding one) {
  for (Finding& old : findings) {
    if (old.code != one.code || old.expected != one.expected || old.found != one.found ||
        old.message != one.message || old.layers != one.layers)
      continue;
    old.engines.insert(old.engines.end(), one.engines.begin(), one.engines.end());
    return;
  }
  findings.push_back(std::move(one));
}

std::string reasons(const EngineReading& reading) {
  std::string text;
  for (const EngineNote& note : reading.notes)
    if (note.kind != EngineNote::Kind::rounded) text += (text.empty() ? "" : "; ") + note.what;
  return text;
}

// What helps where an engine reads another slice, pairing or base than the file has; "": nothing.
std::string cure_of_reading(const Model& model, const EngineDifferences& differs,
                            const std::string& code) {
  const bool of_config = !model.files.empty() && model.files.front().format == FileFormat::config;
  // No key of the file divides positions where rope_ratio multiplies the base.
  if (model.family == "chatglm" && (code == "rope_theta" || code == "rope_scaling"))
    return "run ChatGLM2 by its own code (transformers, trust_remote_code), or take ChatGLM3, "
           "whose rope_ratio is what engines take it for";
  if (code == "rope_theta" && of_config)
    if (const Rope* rope = detail::rope_of_text(model);
        rope && std::holds_alternative<NtkAware>(rope->scaling))
      return "the larger base that NTK-aware scaling by s is, rope_theta b·s^(d/(d − 2)), and no "
             "rope_scaling: all engines read that alike";
  if (code == "rope_theta" && of_config)
    for (const LayerGroup& group : model.groups)
      if (const Rope* rope = detail::rope_of(group); rope && group.stack == Stack::text)
        return "write \"rope_theta\": " + number_text(rope->rope_theta) +
               " at the top of the file too";
  // Qwen 1's growing base and logits, which nobody ported.
  if (code == "logits" && model.family == "qwen")
    return "up to seq_length nothing differs; for longer texts run it by its own code "
           "(transformers 4, trust_remote_code), or take Qwen 1.5 or later, which has neither";
  if (code != "rotary_dim" && code != "pairing") return {};
  const auto newest = find_engine(differs.reading.engine.name);
  if (newest && newest->version != differs.reading.engine.version) {
    const auto mended = engine_differences(model, newest->name);
    if (mended &&
        std::ranges::find(mended->findings, code, &Finding::code) == mended->findings.end())
      return std::string(newest->title) + " " + std::string(newest->version) +
             " reads it as the file says: pip install -U " + std::string(newest->name);
  }
  return "another version or engine: posenc diff FILE --engines all shows which read it as the "
         "file says";
}

}  // namespace

Severity severity_of(const Warning& warning) {
  const LintRule* const rule = rule_of(warning);
  return rule == nullptr ? Severity::warning : rule->severity;
}

Expected<std::vector<Finding>> lint(const Model& model, const LintOptions& options) {
  POSENC_TRY(warnings, detail::warnings_at(model, {.at = options.length}));
  std::vector<Finding> findings;
  findings.reserve(warnings.size());
  for (const Warning& warning : warnings) findings.push_back(as_finding(warning));
  const bool gguf = !model.files.empty() && model.files.front().format == FileFormat::gguf;
  if (gguf) lint_gguf(model, findings);
  if (gguf) lint_lost_division(model, findings);
  lint_llama3(model, gguf, findings);
  lint_gemma3_bases(model, gguf, findings);
  lint_llama3_base(model, findings);
  lint_claimed_context(model, findings);
  lint_recipe(model, options, findings);

  // Nobody asked for an engine: the newest of each, where it reads such files at all.
  const bool any = options.engines.empty();
  std::vector<std::string> asked = options.engines;
  if (any)
    for (const Engine& engine : engines())
      if (!engine.ended && std::ranges::find(asked, engine.name) == asked.end())
        asked.push_back(std::string(engine.name));
  std::vector<Finding> by_engine;
  bool all_fix = !any;
  detail::EngineReadings readings(model, options.length);
  for (const std::string& engine : asked) {
    POSENC_TRY(read, readings.read_by(engine));
    const EngineDifferences& differs = *read;
    if (any && !differs.reading.reads_format) continue;
    all_fix = all_fix && std::ranges::any_of(differs.reading.notes, [](const EngineNote& note) {
                return note.kind == EngineNote::Kind::fixed;
              });
    for (Finding finding : differs.findings) {
      const bool of_named = finding.code == "context" || finding.code == "not_known";
      if (finding.severity == Severity::note && (any || !of_named)) continue;
      // A file is not wrong because one engine of many reads it otherwise, unless that is the one
      // it is for; one that stops at it harms no text.
      // Nor is a GGUF for those that convert it back.
      const bool converts = gguf && differs.reading.engine.name == "transformers";
      if (any)
        finding.severity =
            finding.code == "refused" || converts ? Severity::note : Severity::warning;
      if (const std::string why = reasons(differs.reading);
          !why.empty() && finding.code != "refused")
        finding.message += ". " + why;
      if (finding.cure.empty()) finding.cure = cure_of_reading(model, differs, finding.code);
      finding.code = "engine_" + finding.code;
      add_for_engine(by_engine, std::move(finding));
    }
  }
  // The amplitude is a rest of the lists; and llama.cpp reads the key of its own files.
  const bool by_llama_cpp = !any && std::ranges::all_of(asked, [](const std::string& engine) {
    return engine.starts_with("llama.cpp") || engine.starts_with("ollama");
  });
  if (lost_factors(model) || (gguf && by_llama_cpp))
    std::erase_if(findings,
                  [](const Finding& one) { return one.code == "attention_factor_given"; });
  // A loader that demands it refuses the file, and others do not.
  if (!any)
    std::erase_if(findings, [](const Finding& one) { return one.code == "sections_count"; });
  // No key goes stale in an engine that has one rotation for all lengths.
  if (all_fix)
    std::erase_if(findings, [](const Finding& one) {
      return one.code == "stale_keys" || one.code == "length_dependent";
    });
  findings.insert(findings.end(), by_engine.begin(), by_engine.end());
  std::ranges::stable_sort(findings, {}, &Finding::severity);
  return findings;
}

}  // namespace posenc
