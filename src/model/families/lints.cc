// Contradictions in a resolved scaling. The codes are stable:
//   context_below_reach the context is a little below the trained length times the factor
//   factor_vs_lengths   factor differs from max_position_embeddings over the trained length
//   original_is_max     the trained length is the context itself, so nothing seems extended
//   trained_length_kept the file says so, as Qwen publishes its own: engines read further if asked
//   factor_below_one    a factor that would shorten the context
//   equal_factors       Llama-3: no ramp between the low and the high factor
//   betas_reversed      YaRN: beta_fast below beta_slow
//   attention_factor_given   replaces the rule's own; engines differ in whether they read it
//   mscale_alone        one of DeepSeek's pair without the other has no effect
//   unread_key          a key whose name says that it changes the rotation, and that nobody reads
//   ignored_key         a key that changes positions in the model's own code and not in the plan
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "src/core/edit_distance.h"
#include "src/core/small_letters.h"
#include "src/model/families/rope.h"

namespace posenc::detail {

namespace {

// Some publish the very factor that YaRN computes: with or without the key nothing changes.
bool is_computed_anyway(const Scaling& scaling, double given) {
  const auto* yarn = std::get_if<Yarn>(&scaling);
  if (!yarn || !yarn->factor || *yarn->factor <= 1 || number_of(scaling, "mscale").value_or(0) != 0)
    return false;
  constexpr double printed = 1e-6;  // files keep at least so many digits
  return std::abs(given - (0.1 * std::log(*yarn->factor) + 1)) < printed;
}

// A GGUF holds what multiplies YaRN's own factor, and a converter may have written the whole of it.
std::string given_in_gguf(const Scaling& scaling, double given, std::string_view where) {
  constexpr double digits = 1e4, printed = 1e-5;
  const auto round = [](double value) { return number_text(std::round(value * digits) / digits); };
  const double factor = number_of(scaling, "factor").value_or(1),
               own = factor > 1 ? 0.1 * std::log(factor) + 1 : 1, times = given / own;
  return std::string(where) + ".attn_factor " + round(times) + " multiplies YaRN's own " +
         round(own) + ": cos and sin × " + round(given) +
         (factor > 1 && std::abs(times - own) < printed
              ? ", as where a converter wrote attention_factor, which is the whole"
              : "");
}

// What needs no length.
void lint_factors(Reading& reading, const Family& family, const Scaling& scaling,
                  std::string_view where) {
  const auto value = [&](std::string_view field) { return number_of(scaling, field); };
  const auto warn = [&](std::string_view code, const std::string& message) {
    reading.warn(code, std::string(where) + ": " + message);
  };
  const std::string type(info(scaling).name);
  const auto low = value("low_freq_factor"), high = value("high_freq_factor");
  const bool as_published = family.rope.steps && low == high;
  if (low && high && *low >= *high && !as_published) {
    warn("equal_factors", "low_freq_factor " + number_text(*low) +
                              " is not below high_freq_factor " + number_text(*high) +
                              ": there is no ramp, the frequencies jump");
  }
  const auto fast = value("beta_fast"), slow = value("beta_slow");
  if (fast && slow && *fast < *slow) {
    warn("betas_reversed",
         "beta_fast " + number_text(*fast) + " is below beta_slow " + number_text(*slow));
  }
  const auto given = value("attention_factor");
  if (given && !family.rope.flatter_yarn && !is_computed_anyway(scaling, *given)) {
    reading.warn("attention_factor_given",
                 (where.ends_with("rope.scaling")
                      ? given_in_gguf(scaling, *given, where)
                      : std::string(where) + ": attention_factor " + number_text(*given) +
                            " replaces the one " + type + " would compute") +
                     "; some engines ignore the key");
  }
  const bool mscale = value("mscale").value_or(0) != 0,
             all_dim = value("mscale_all_dim").value_or(0) != 0;
  if (mscale != all_dim) {
    warn("mscale_alone",
         std::string(mscale ? "mscale without mscale_all_dim" : "mscale_all_dim without mscale") +
             " does not change cos and sin in Hugging Face; some engines use it");
  }
}

// The key of a GGUF and the flag in its place; "": the file is a configuration.
std::string cure_in_gguf(std::string_view where, double trained) {
  if (!where.ends_with("rope.scaling")) return {};
  const std::string tokens = number_text(std::round(trained));
  return "; write " + std::string(where) + ".original_context_length " + tokens +
         " (llama.cpp: --yarn-orig-ctx " + tokens + "), if that many were trained";
}

}  // namespace

// The key of a length of the file that is so many tokens; "": none is.
std::string_view length_of(const Section& config, double tokens) {
  constexpr std::string_view keys[] = {"max_sequence_length", "model_max_length",
                                       "max_seq_len",         "seq_length",
                                       "n_positions",         "max_context_length"};
  for (const auto& [key, value] : config.members()) {
    const auto* const known = std::ranges::find(keys, key);
    const auto* whole = value.get<std::int64_t>();
    if (known != std::end(keys) && whole && static_cast<double>(*whole) == tokens) return *known;
  }
  return "";
}

void lint_scaling(const Section& config, const Family& family, const Scaling& scaling,
                  std::int64_t context, std::string_view where, bool stated) {
  Reading& reading = config.reading;
  const auto value = [&](std::string_view field) { return number_of(scaling, field); };
  const auto warn = [&](std::string_view code, const std::string& message) {
    reading.warn(code, std::string(where) + ": " + message);
  };
  const auto factor = value("factor"), original = value("original_max_position_embeddings");
  const std::string type(info(scaling).name);

  if (factor && *factor < 1) {
    warn("factor_below_one",
         "factor " + number_text(*factor) + " is below 1 and would speed positions up");
  }
  const double longest = static_cast<double>(context);
  // Llama-3's factor divides the slow pairs only and never meant the ratio of the lengths.
  const auto low = value("low_freq_factor");
  const bool whole = original == longest && context > 0 && factor.value_or(1) != 1;
  const bool published = stated && original == static_cast<double>(family.context);
  if (whole && !low && published && factor.value_or(1) > 1) {
    const std::string kept = std::to_string(context);
    warn("trained_length_kept", "max_position_embeddings stays at the trained " + kept +
                                    " beside " + type + " factor " + number_text(*factor) +
                                    ", as the model's authors publish it: engines serve " +
                                    number_text(*factor * longest) +
                                    " tokens only where they are asked to (vLLM: --max-model-len, "
                                    "from 0.30 on beside max_position_embeddings in "
                                    "--hf-overrides)");
    return lint_factors(reading, family, scaling, where);
  }
  // A length that was rounded down, or kept below what the scaling reaches.
  constexpr double nearly_all = 0.75;
  const double share = original && factor ? longest / (*original * *factor) : 0;
  if (original && *original > 0 && context > 0 && factor && !low && !whole && share >= nearly_all &&
      share < 1) {
    warn("context_below_reach",
         "max_position_embeddings " + number_text(longest) + " is below the " +
             number_text(*original * *factor) + " that factor " + number_text(*factor) + " of " +
             number_text(*original) +
             " reaches: the factor is used (transformers 4.51 and its neighbours take the ratio of "
             "the lengths)");
  } else if (original && *original > 0 && context > 0 && factor && !low && !whole &&
             longest / *original != *factor) {
    const double meant = *factor * *original;
    const bool is_length = meant == std::floor(meant) && meant <= static_cast<double>(most_length);
    // A third length decides: it is the one that the factor reaches.
    if (const std::string_view third = length_of(config, meant); !third.empty())
      warn("context_below_reach",
           "max_position_embeddings " + number_text(longest) + " is below the " +
               number_text(meant) + " that factor " + number_text(*factor) + " of " +
               number_text(*original) + " reaches and " + std::string(third) +
               " promises: the factor is right, and engines that go by max_position_embeddings "
               "serve less");
    else
      warn("factor_vs_lengths",
           "factor is " + number_text(*factor) +
               ", but max_position_embeddings/trained length is " + number_text(longest) + "/" +
               number_text(*original) + " = " + number_text(longest / *original) +
               "; the factor is used; " +
               (is_length ? "write max_position_embeddings " + number_text(meant) + " or " : "") +
               "correct the factor");
  }
  if (original && *original >= longest && context > 0 && factor.value_or(1) != 1) {
    warn("original_is_max", "the trained length " + number_text(*original) +
                                " is not below max_position_embeddings " + number_text(longest) +
                                " although " + type + " scaling extends it" +
                                cure_in_gguf(where, longest / factor.value_or(1)));
  }
  lint_factors(reading, family, scaling, where);
}

void lint_ignored(const Section& config, const Family& family) {
  struct Ignored {
    std::string_view key, effect;
    std::string_view nothing = {};  // the value by which it says nothing
  };
  constexpr Ignored ignored[] = {
      {"rotary_scaling_factor", "stretches the base beyond max_trained_positions"},
      {"rope_condense_ratio",
       "divides every position by it (LongChat, in FastChat's loader), and no other engine does",
       "1"},
      {"rope_interpolation_factor", "divides every position by it", "1"},
      {"rotary", "has a base and a scaling of its own in it (InternLM)"},
  };
  for (const auto& [key, effect, nothing] : ignored) {
    const Json* value = config.raw(key);
    if (!value || value->is_null() || value->text() == nothing) continue;
    if (key == family.rope.stretch) continue;  // which is read
    if (value->get<bool>()) continue;          // GPT-J's "rotary": true
    if (key == "rotary" && !value->find("base")) continue;
    const Json* const type = value->find("type");
    if (key == "rotary" && type && type->text() == "\"origin\"" && family.rope.rotary_object) {
      if (value->find("base")->text() == "10000" || config.has("rope_theta")) continue;
      config.reading.warn("ignored_key",
                          config.where(key) + ": its base, " + value->find("base")->text() +
                              ", is that of the model's own code, and of the plan; "
                              "an engine that looks for rope_theta alone runs 10000");
      continue;
    }
    config.reading.warn("ignored_key", config.where(key) + ": the model's own code " +
                                           std::string(effect) + "; the plan is that without it");
  }
}

namespace {

bool has_part(std::string_view key, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return key.contains(part); });
}

// Whether a key's name says that it changes a rotation, by its words alone.
bool speaks_of_rotation(std::string_view name) {
  const std::string key = small_letters(name);
  if (key == "compress_pos_emb" || key == "alpha_value" || key == "use_logn_attn") return true;
  if (key == "no_rope_layers" || key == "no_rope_layer_interval") return true;
  const bool rotates =
      has_part(key, {"rope", "rotary", "yarn", "ntk", "longrope"}) ||
      (key.contains("position") && has_part(key, {"interpol", "scale", "scaling", "factor"}));
  return rotates && !has_part(key, {"europe", "property", "attn", "attention", "mscale"}) &&
         (has_part(key, {"factor", "scale", "scaling", "ratio", "interpol", "theta", "base",
                         "fraction", "pct", "percent", "alpha", "condense", "type", "method"}) ||
          has_part(key, {"yarn", "ntk"}));
}

// Whether a value asks for anything: a number that is no neutral one, a scaling's word, a flag.
bool asks_for_something(std::string_view key, const Json& value, const std::vector<double>& held) {
  // 0 for a layer without rotation, or how often such a layer comes.
  if (key == "no_rope_layers") {
    const auto* layers = value.get<Json::Array>();
    return layers &&
           std::ranges::any_of(*layers, [](const Json& one) { return one.text() == "0"; });
  }
  if (key == "no_rope_layer_interval") return value.get<std::int64_t>() && value.text() != "0";
  if (const bool* flag = value.get<bool>()) return *flag && has_part(key, {"yarn", "ntk", "logn"});
  if (const std::string* word = value.get<std::string>())
    return has_part(*word, {"yarn", "linear", "dynamic", "ntk", "longrope", "llama3"});
  const double* real = value.get<double>();
  const auto* whole = value.get<std::int64_t>();
  if (!real && !whole) return value.get<Json::Object>() != nullptr;
  const double number = real ? *real : static_cast<double>(*whole);
  return number > 0 && number != 1 && std::ranges::find(held, number) == held.end();
}

}  // namespace

// GLM's files before `glm` was a family had the base as 10000 times this.
std::string cure_of(std::string_view key, const Json& value) {
  const std::int64_t* whole = value.get<std::int64_t>();
  const double* real = value.get<double>();
  const double ratio = whole ? static_cast<double>(*whole) : real ? *real : 0;
  if (key == "compress_pos_emb")
    return " (exllama and text-generation-webui divide positions by it); drop the key, and where "
           "the model was trained so write \"rope_scaling\": {\"rope_type\": \"linear\", "
           "\"factor\": " +
           number_text(ratio) + "}";
  if (key == "alpha_value")
    return " (exllama and text-generation-webui multiply the base by its power d/(d − 2), d a "
           "head's channels); drop the key, and where the model is to run so write that base as "
           "rope_theta";
  if (key != "rope_ratio" || !(ratio > 1)) return {};
  return "; drop the key, and where the model was made of a GLM write rope_theta " +
         number_text(10000 * ratio) + ", which is what rope_ratio means there";
}

// What other programs call a key of Hugging Face's; "": it is none of theirs.
std::string_view name_here(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"rotary_base", "rope_theta"},
      {"rope_base", "rope_theta"},
      {"rope_freq_base", "rope_theta"},
      {"rotary_emb_base", "rope_theta"},
      {"rotary_percent", "partial_rotary_factor"},
      {"rotary_pct", "partial_rotary_factor"}};
  const auto* const at = std::ranges::find(names, key, [](const auto& each) { return each.first; });
  return at == std::end(names) ? std::string_view() : at->second;
}

// The key that somebody meant who wrote this one: a letter or two apart; "": none is near.
std::string_view meant_by(std::string_view key) {
  constexpr std::string_view keys[] = {"rope_theta",
                                       "rope_scaling",
                                       "rope_parameters",
                                       "rope_local_base_freq",
                                       "partial_rotary_factor",
                                       "max_position_embeddings",
                                       "original_max_position_embeddings"};
  std::string spelling = small_letters(key);
  std::ranges::replace(spelling, '-', '_');
  const std::string_view near = nearest(spelling, keys);
  const std::size_t most = near.size() > 10 ? 2 : 1;
  const bool is_other = near != key;
  return is_other && !near.empty() && edit_distance(spelling, near) <= most ? near : "";
}

// Where the family's published files have no code beside them, one that names some has another
// class.
void warn_of_own_class(const Section& config, const Family& family) {
  const auto& told = config.reading.model.warnings;
  const bool known = std::ranges::find(told, "own_code", &Warning::code) != told.end();
  if (!family.plain_files || known) return;
  const Section map = config.section("auto_map");
  if (!map) return;
  for (const char* key : {"AutoModelForCausalLM", "AutoModel"}) {
    const auto named = map.word(key);
    if (!named) continue;
    config.reading.warn("family_remark",
                        named->key + " is " + printable(named->value, 80) +
                            ": with trust_remote_code that class runs in place of transformers' "
                            "own for " +
                            config.reading.family +
                            ", and may rotate otherwise; posenc has not read it");
    return;
  }
}

void lint_unasked(const Section& config, bool own_code) {
  Reading& reading = config.reading;
  std::vector<double> held;  // by the plan anyway
  for (const LayerGroup& group : reading.model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const Rope* rope = std::get_if<Rope>(&scheme)) {
        held.push_back(rope->rope_theta);
        held.push_back(rope->partial_rotary_factor);
        for (const char* field : {"factor", "alpha", "original_max_position_embeddings"})
          if (const auto number = number_of(rope->scaling, field)) held.push_back(*number);
      }
  // raw() would count them among the keys that were read.
  const auto member = [&](std::string_view wanted) -> const Json* {
    for (const auto& [key, value] : config.members())
      if (key == wanted) return &value;
    return nullptr;
  };
  if (const Json *type = member("rope_scaling_type"), *factor = member("rope_scaling_factor");
      type && factor && !member("rope_scaling") && !member("rope_parameters"))
    reading.warn(
        "foreign_name",
        config.where("rope_scaling_type") +
            " and rope_scaling_factor stand by themselves, "
            "and Hugging Face's code reads them inside rope_scaling alone: nothing is scaled; "
            "write \"rope_scaling\": {\"rope_type\": " +
            printable(type->text(), 80) + ", \"factor\": " + printable(factor->text(), 80) +
            "} if the model was trained so");
  int left = 8;  // of more somebody has made a game
  for (const auto& [key, value] : config.members()) {
    if (left == 0) return;
    if (reading.asked.contains(key)) continue;
    if (const std::string_view meant = meant_by(key); !meant.empty() && !member(meant)) {
      --left;
      reading.warn("misspelt_key", config.where(key) + " is " + printable(value.text(), 80) +
                                       ", which no code reads: " + std::string(meant) +
                                       " is what it is called; rename it");
      continue;
    }
    if (!speaks_of_rotation(key)) continue;
    if (!asks_for_something(key, value, held)) continue;
    // Said already, or of a family whose rule has no rotation to change.
    const bool told = std::ranges::any_of(
        reading.model.warnings, [&](const Warning& one) { return one.message.contains(key); });
    if (told || held.empty()) continue;
    --left;
    const std::string said = config.where(key) + " is " + printable(value.text(), 80);
    if (own_code)
      reading.warn("ignored_key", said +
                                      ", and posenc knows no code that reads it: the model's own "
                                      "may, and then rotates otherwise than the plan");
    else if (const std::string_view name = name_here(key); !name.empty())
      reading.warn("foreign_name",
                   said + ", which is another program's name: Hugging Face's code for " +
                       reading.family + " reads " + std::string(name) +
                       ", and runs its default; write " + std::string(name) + " " +
                       printable(value.text(), 80) + " if the model was trained so");
    else
      reading.warn("unread_key", said + ", which Hugging Face's code for " + reading.family +
                                     " does not read; it has no effect" + cure_of(key, value));
  }
}

}  // namespace posenc::detail
