// What an engine's command line makes of a model: keys of the configuration are put in, and the
// engine's profile reads the rest.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/tools.h"
#include "src/core/saturating.h"
#include "src/core/try.h"
#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/command_line.h"
#include "src/tools/recipes.h"
#include "src/tools/told_rope.h"

namespace posenc {
namespace {

using detail::CommandFlag, detail::CommandLine, detail::Json, detail::JsonMember,
    detail::line_finding, detail::mutable_rope, detail::number_of_flag;

// "32768"; vLLM's alone may be 32k (32,000) or 32K (32,768).
Expected<std::int64_t> length_of_flag(const CommandFlag& flag) {
  CommandFlag number = flag;
  double unit = 1;
  constexpr std::pair<char, double> units[] = {
      {'k', 1e3}, {'K', 0x1p10}, {'m', 1e6}, {'M', 0x1p20}};
  for (const auto& [letter, size] : units)
    if (flag.name == "--max-model-len" && number.value.ends_with(letter)) unit = size;
  if (unit > 1) number.value.pop_back();
  POSENC_TRY(value, number_of_flag(number));
  const double length = value * unit;
  if (length >= 0 && length <= 0x1p40 && length == std::floor(length))
    return static_cast<std::int64_t>(length);
  return fail("command", flag.name + " must be a number of tokens", flag.value,
              "write it as 32768");
}

constexpr std::string_view scaling_keys[] = {"rope_parameters", "rope_scaling"};

const Json* scaling_in(const Json& config) {
  for (const std::string_view key : scaling_keys)
    if (const Json* dict = config.find(key)) return dict;
  return nullptr;
}

Expected<std::int64_t> asked_length(const CommandLine& line) {
  for (const char* name :
       {"--ctx-size", "--max-model-len", "--context-length", "--session-len", "--max-seq-len",
        "--seq-length", "--max-total-tokens", "--max-length", "--max-req-total-len"}) {
    const CommandFlag* flag = line.find(name);
    if (!flag || flag->value == "auto" || flag->value == "-1") continue;
    return length_of_flag(*flag);
  }
  // trtllm-build before 0.12: prompt and answer apart.
  const CommandFlag *prompt = line.find("--max-input-len"), *answer = line.find("--max-output-len");
  if (!prompt || !answer) return 0;
  POSENC_TRY(of_prompt, length_of_flag(*prompt));
  POSENC_TRY(of_answer, length_of_flag(*answer));
  return detail::sum(of_prompt, of_answer);
}

class Overrides {
 public:
  // `version` of the engine; "": nobody tells it.
  Overrides(Model& model, const CommandLine& line, std::string_view version,
            std::vector<Finding>& findings)
      : model_(model), line_(line), version_(version), findings_(findings) {}

  Expected<void> apply() {
    if (line_.engine == "tgi") return apply_tgi();
    if (line_.engine.starts_with("exllama")) return apply_exllama();
    if (line_.engine == "lmdeploy") POSENC_CHECK(apply_lmdeploy());
    if (const CommandFlag* old = line_.find("--rope-scaling")) POSENC_CHECK(apply_old(*old));
    if (const CommandFlag* old = line_.find("--rope-theta")) POSENC_CHECK(apply_theta(*old));
    for (const char* name : {"--hf-overrides", "--json-model-override-args"})
      if (const CommandFlag* flag = line_.find(name)) POSENC_CHECK(apply_config(*flag));
    return {};
  }

 private:
  // --rope-scaling linear or dynamic, and --rope-factor, stand above the file's whole scaling.
  Expected<void> apply_tgi() {
    const CommandFlag* type = line_.find("--rope-scaling");
    const CommandFlag* factor = line_.find("--rope-factor");
    if (!type) {
      if (factor)
        findings_.push_back(line_finding("flag_unread", Severity::error, factor->name,
                                         "--rope-factor is not read without --rope-scaling",
                                         "write --rope-scaling dynamic beside it"));
      return {};
    }
    if (type->value != "linear" && type->value != "dynamic")
      return fail("command", "--rope-scaling must be linear or dynamic", type->value,
                  "other scalings stand in the config.json");
    POSENC_TRY(number, factor ? number_of_flag(*factor) : Expected<double>(1.0));
    if (type->value == "linear")
      findings_.push_back(line_finding(
          "flag_unread", Severity::error, "--rope-scaling linear",
          "TGI's branch for linear does nothing: no position is divided, and the texts that the "
          "flag should allow are unscaled",
          "write --rope-scaling dynamic, or run the scaling in another engine"));
    POSENC_TRY(dict, detail::parse_json("{\"type\":\"" + type->value +
                                            "\",\"factor\":" + number_text(number) + "}",
                                        "--rope-scaling"));
    return put_in(dict, false, "rope_scaling.");
  }

  // TurboMind's --rope-scaling-factor, up to 0.13: dynamic NTK, whatever scaling the file has; 0 is
  // none.
  Expected<void> apply_lmdeploy() {
    constexpr double small_share = 0.05;
    if (const CommandFlag* share = line_.find("--cache-max-entry-count"))
      if (const auto part = number_of_flag(*share); part && *part > 0 && *part < small_share)
        findings_.push_back(line_finding(
            "cache_memory", Severity::warning, "--cache-max-entry-count " + number_text(*part),
            "so small a share of the memory holds keys of a few thousand tokens: longer texts are "
            "answered with nothing, whatever --session-len says",
            "0.8, the default, or what the memory allows; keys in 8 bits (--quant-policy 8)"));
    const CommandFlag* flag = line_.find("--rope-scaling-factor");
    if (!flag) return {};
    POSENC_TRY(factor, number_of_flag(*flag));
    if (factor == 0) return {};
    if (factor < 1)
      return fail("command", "--rope-scaling-factor must be 1 or more", flag->value,
                  "write 2.0 for twice the context, 4.0 for four times");
    const CommandFlag* backend = line_.find("--backend");
    const bool of_pytorch = backend && backend->value == "pytorch";
    if (of_pytorch || !is_before(version_, "0.14")) {
      findings_.push_back(line_finding(
          "flag_unread", Severity::error, "--rope-scaling-factor " + number_text(factor),
          of_pytorch ? "the PyTorch backend does not read it: nothing is scaled"
                     : "LMDeploy takes it, and 0.14 and later read it nowhere "
                       "(InternLM/lmdeploy#4557): nothing is scaled",
          "write the scaling into the config.json (posenc extend MODEL --to LENGTH writes it), and "
          "drop the flag"));
      return {};
    }
    POSENC_TRY(dict,
               detail::parse_json("{\"type\":\"dynamic\",\"factor\":" + number_text(factor) + "}",
                                  "--rope-scaling-factor"));
    findings_.push_back(line_finding(
        "approximated", Severity::note, "--rope-scaling-factor " + number_text(factor),
        "TurboMind of 0.13 and before reads it as dynamic NTK by the length of each text, and the "
        "scaling of the file is lost",
        "where the model's card publishes YaRN: write it into the config.json, and drop the "
        "flag"));
    return put_in(dict, false, "rope_scaling.");
  }

  // rope_scale divides positions, rope_alpha raises the base as NTK-aware scaling does.
  Expected<void> apply_exllama() {
    const CommandFlag *scale = line_.find("--rope-scale"), *alpha = line_.find("--rope-alpha");
    POSENC_TRY(by, scale ? number_of_flag(*scale) : Expected<double>(1.0));
    POSENC_TRY(raised, alpha ? number_of_flag(*alpha) : Expected<double>(1.0));
    if (by <= 0 || raised <= 0)
      return fail("command", "rope_scale and rope_alpha must be above 0",
                  scale && by <= 0 ? scale->value : alpha->value, "write 1 for none");
    if (by == 1 && raised == 1) return {};
    // tabbyAPI's container of exllamav3 reads no key of a rotation (backends/exllamav3/model.py);
    // neither does text-generation-webui's.
    const bool is_v2 = line_.engine == "exllamav2", is_said = line_.find("--backend") != nullptr;
    if (!is_v2) {
      const bool of_tabby = line_.program == "tabbyapi";
      const std::string named = of_tabby      ? raised != 1 ? "rope_alpha " : "rope_scale "
                                : raised != 1 ? "alpha_value "
                                              : "compress_pos_emb ",
                        program = of_tabby ? "tabbyAPI" : "text-generation-webui",
                        both = of_tabby ? "rope_scale nor rope_alpha"
                                        : "compress_pos_emb nor alpha_value";
      findings_.push_back(line_finding(
          "flag_unread", is_said ? Severity::error : Severity::warning,
          named + number_text(raised != 1 ? raised : by),
          is_said ? "with exllamav3 " + program + " reads neither " + both +
                        ": the model rotates as its config.json says"
                  : "tabbyAPI reads rope_scale and rope_alpha with backend exllamav2 alone; "
                    "exllamav3 rotates as the config.json says",
          "write the scaling into the model's config.json: posenc extend MODEL --to LENGTH "
          "--engine exllamav3"));
    }
    if (!is_v2) return {};
    for (LayerGroup& group : model_.groups) {
      Rope* rope = mutable_rope(group);
      if (!rope || is_tower(group.stack)) continue;
      const auto plan = compile(group);
      const double dim = plan && plan->rotate ? static_cast<double>(2 * plan->rotate->pairs()) : 0;
      if (raised != 1 && dim > 2) {
        rope->rope_theta *= std::pow(raised, dim / (dim - 2));
        // Which ExLlama multiplies after it has read the file.
        std::erase_if(group.provenance,
                      [](const Provenance& value) { return value.field == "rope_theta"; });
        group.provenance.push_back(
            {"rope_theta", number_text(rope->rope_theta), Origin::file, "rope_theta"});
      }
      if (by != 1) rope->scaling = Linear{by};
    }
    return {};
  }

  void say_removed(const CommandFlag& flag) {
    constexpr std::string_view last_with_it = "0.11.1";
    const bool still = is_before(line_.version, last_with_it);
    findings_.push_back(line_finding(
        "flag_removed", still ? Severity::note : Severity::error, flag.name,
        still ? "vLLM " + line_.version + " has " + flag.name + ", 0.11.1 and later no more"
              : "vLLM has no " + flag.name +
                    " since 0.11.1, and ends with an error; read here as before",
        override_of(flag)));
  }

  // What --rope-scaling DICT is today, with the base that it would replace.
  std::string override_of(const CommandFlag& flag) const {
    std::string usual =
        "write --hf-overrides with all of rope_parameters: posenc translate writes it";
    const Rope* rope = nullptr;
    for (const LayerGroup& group : model_.groups)
      if (const Rope* one = detail::rope_of(group); one && !is_tower(group.stack)) rope = one;
    if (flag.name != "--rope-scaling" || !flag.value.starts_with('{') || !rope) return usual;
    std::string dict = flag.value.substr(1);
    if (const std::size_t type = dict.find("\"type\"");
        type != dict.npos && !dict.contains("rope_type"))
      dict.replace(type + 1, 4, "rope_type");
    const auto asked = asked_length(line_);
    const std::string longer = asked && *asked > model_.context
                                   ? ",\"max_position_embeddings\":" + std::to_string(*asked)
                                   : "";
    const std::string whole =
        "{\"rope_parameters\":{\"rope_theta\":" + number_text(rope->rope_theta) + "," + dict +
        longer + "}";
    return "--hf-overrides '" + detail::within_parts(detail::parts_around(model_), whole) + "'";
  }

  Expected<Json> object_of(const CommandFlag& flag) const {
    Expected<Json> json = detail::parse_json(flag.value, flag.name);
    if (json && json->get<Json::Object>()) return json;
    return fail("command", flag.name + " must be a JSON object", flag.value,
                "write it in single quotes, with double quotes inside");
  }

  Expected<void> apply_old(const CommandFlag& flag) {
    say_removed(flag);
    POSENC_TRY(dict, object_of(flag));
    return put_in(dict, false, "rope_scaling.");
  }

  Expected<void> apply_theta(const CommandFlag& flag) {
    say_removed(flag);
    POSENC_TRY(theta, number_of_flag(flag));
    return put_base(theta, flag.value);
  }

  Expected<void> put_base(double theta, const std::string& said) {
    if (theta <= 1) return fail("command", "rope_theta must be above 1", said, "write the base");
    for (LayerGroup& group : model_.groups)
      if (Rope* rope = mutable_rope(group); rope && !is_tower(group.stack))
        rope->rope_theta = theta;
    return {};
  }

  Expected<void> apply_config(const CommandFlag& flag) {
    POSENC_TRY(json, object_of(flag));
    const std::vector<std::string_view> parts = detail::parts_around(model_);
    const bool inside = !parts.empty();
    const Json* text = inside ? &json : json.find("text_config");
    for (const std::string_view part : parts)
      if (text) text = text->find(part);
    // vLLM calls llm_config text_config, too.
    if (inside && !text && parts.back() == "llm_config" && line_.engine == "vllm")
      text = json.find("text_config");
    const bool is_sglang = line_.engine == "sglang";
    // A flat file of these families becomes a text_config in their class, which the override reaches.
    constexpr std::string_view made_by_class = "qwen2_vl qwen2_5_vl";
    if (!inside && text && line_.engine == "vllm" &&
        detail::contains_word(made_by_class, model_.family)) {
      POSENC_CHECK(check_keys(*text, flag));
      if (const Json* dict = scaling_in(*text); dict && dict->get<Json::Object>())
        return put_in(*dict, false,
                      text->find("rope_parameters") ? "rope_parameters." : "rope_scaling.");
      return {};
    }
    // 0.5.23 merges a part of the configuration by its keys, and a scaling at the top by its own
    // (utils/hf_transformers/config.py); older ones put the one in place of the other.
    const bool merges_parts = is_sglang && !is_before(version_, "0.5.23");
    if (inside && is_sglang && text && !merges_parts) {
      findings_.push_back(line_finding(
          "override_refused", Severity::error, flag.name,
          "SGLang puts the override in place of the whole text_config, does not merge it, and "
          "stops for want of the text's sizes",
          "write the scaling into text_config of the config.json itself, and drop the flag"));
      return {};
    }
    const Json* read = inside ? text : &json;
    const Json* unread = inside ? &json : text;
    // Of a model that speaks, text_config stands within thinker_config.
    if (parts.size() > 1 && !scaling_in(json)) unread = json.find("text_config");
    if (unread && scaling_in(*unread))
      findings_.push_back(line_finding(
          "override_unread", Severity::error, flag.name,
          inside ? "the override stands at the top, and the text's layers read their own part: it "
                   "does nothing"
                 : "the override stands in text_config, which this configuration does not have: it "
                   "does nothing",
          inside && is_sglang && !merges_parts
              ? "write it into text_config of the config.json itself"
          : inside
              ? flag.name + " '" +
                    detail::within_parts(parts, with_context(printable(flag.value, 2000))) + "'"
              : "put rope_parameters at the top"));
    if (!read) return {};
    POSENC_CHECK(check_keys(*read, flag));
    if (const Json* dict = scaling_in(*read)) {
      if (!dict->get<Json::Object>())
        return fail("command", "rope_parameters must be a JSON object", dict->text(),
                    "write {\"rope_type\": …}");
      // vLLM merges what is nested with what is there, and replaces what stands at the top.
      // LMDeploy merges both (override_hf_config of its pytorch/config.py).
      const bool merges =
          line_.engine == "lmdeploy" || (inside ? line_.engine == "vllm" : merges_parts);
      const bool of_five = read->find("rope_parameters") != nullptr;
      POSENC_CHECK(put_in(*dict, !merges, of_five ? "rope_parameters." : "rope_scaling."));
    }
    if (const Json* context = read->find("max_position_embeddings"))
      if (const auto* tokens = context->get<std::int64_t>(); tokens && *tokens > 0)
        model_.context = *tokens;
    return {};
  }

  // The same keys, and from vLLM 0.30 on the length besides, without which it does not start.
  std::string with_context(std::string json) const {
    const auto asked = asked_length(line_);
    const std::size_t end = json.rfind('}');
    if (asked && *asked > model_.context && !json.contains("\"max_position_embeddings\"") &&
        end != json.npos)
      json.insert(end, ",\"max_position_embeddings\":" + std::to_string(*asked));
    return json;
  }

  // rope_theta and rope_scaling are keys of their own under transformers 4.
  bool keys_apart() const {
    return line_.engine == "vllm" && !version_.empty() && is_before(version_, "0.12");
  }

  // Of the configuration's own keys those that are nearly ours.
  Expected<void> check_keys(const Json& config, const CommandFlag& flag) {
    for (const JsonMember& member : *config.get<Json::Object>()) {
      if (member.key == "max_model_len") {
        findings_.push_back(line_finding(
            "override_unread", Severity::error, member.key,
            "max_model_len is no key of a configuration, and nobody reads it there",
            std::string(line_.engine == "sglang" ? "--context-length" : "--max-model-len") +
                " LENGTH as a flag, and max_position_embeddings in " + flag.name +
                " where that is longer than the file says"));
        continue;
      }
      if (std::ranges::find(scaling_keys, member.key) != std::end(scaling_keys)) continue;
      if (member.key == "rope_theta" && keys_apart()) {
        POSENC_CHECK(put_base(detail::real_number(member.value).value_or(0), member.value.text()));
        continue;
      }
      if (member.key == "rope_theta" || member.key == "partial_rotary_factor") {
        findings_.push_back(
            line_finding("override_unread", Severity::error, member.key,
                         flag.name + " sets " + member.key +
                             " beside rope_parameters, which has its own and is what is read",
                         "put " + member.key + " into rope_parameters, with all its other keys"));
        continue;
      }
      const std::string_view near = nearest(member.key, scaling_keys);
      if (!near.empty() && member.key.starts_with("rope"))
        return fail("command", "a key about position must be one that is read", member.key,
                    suggestion(member.key, scaling_keys));
    }
    return {};
  }

  Expected<void> check_fields(const Json& dict) const {
    std::vector<std::string_view> names(detail::told_fields().begin(), detail::told_fields().end());
    for (const char* also : {"rope_type", "type", "rope_theta", "partial_rotary_factor",
                             "mrope_section", "mrope_interleaved", "attn_factor", "alpha"})
      names.push_back(also);
    for (const JsonMember& member : *dict.get<Json::Object>()) {
      if (std::ranges::find(names, member.key) != names.end()) continue;
      const std::string_view near = nearest(member.key, names);
      if (!near.empty() && member.key.size() > 4 && near.substr(0, 3) == member.key.substr(0, 3))
        return fail("command", "a key of a scaling must be one that is read", member.key,
                    suggestion(member.key, names));
    }
    return {};
  }

  // A dict, or one for each kind of layer.
  Expected<void> put_in(const Json& dict, bool replaces, const std::string& where) {
    for (LayerGroup& group : model_.groups) {
      Rope* rope = mutable_rope(group);
      if (!rope || is_tower(group.stack)) continue;
      const char* kind = group.window ? "sliding_attention" : "full_attention";
      const Json* own = dict.find(kind);
      if (!own && (dict.find("full_attention") || dict.find("sliding_attention"))) continue;
      const Json& mine = own ? *own : dict;
      if (!mine.get<Json::Object>())
        return fail("command", std::string(kind) + " must be a JSON object", mine.text(),
                    "write {\"rope_type\": …}");
      POSENC_CHECK(check_fields(mine));
      put_into(group, *rope, mine, replaces, own ? where + kind + "." : where);
    }
    model_.warnings.clear();  // of keys that are no longer there
    return {};
  }

  void put_into(LayerGroup& group, Rope& rope, const Json& dict, bool replaces,
                const std::string& where) {
    std::vector<Finding> remarks;
    std::optional<Rope> told =
        detail::told_rope(rope, dict, {.context = model_.context, .replaces = replaces}, remarks);
    for (Finding& remark : remarks) {
      if (remark.code == "theta_missing" && keys_apart() && where.contains("rope_scaling")) {
        if (told) told->rope_theta = rope.rope_theta;
        continue;
      }
      if (remark.code == "theta_missing" && line_.engine == "sglang") {
        // Its class of Qwen 3 takes 1,000,000 where nobody says a base (models/qwen3.py).
        if (model_.family == "qwen3" && rope.rope_theta == 1e6) {
          if (told) told->rope_theta = rope.rope_theta;
          continue;
        }
        remark.message =
            "SGLang ends with an error: the override replaces all of rope_parameters, and has no "
            "rope_theta";
        remark.found = {};
        if (told) told->rope_theta = rope.rope_theta;
      }
      if (std::ranges::find(findings_, remark) == findings_.end())
        findings_.push_back(std::move(remark));
    }
    if (!told) return;
    if (!std::holds_alternative<Proportional>(told->scaling)) part_of_head(group, dict, *told);
    rope = *std::move(told);
    std::erase_if(group.provenance, [&](const Provenance& value) {
      return value.detail.contains("rope_scaling") || value.detail.contains("rope_parameters") ||
             (value.field == "rope_theta" && replaces) || dict.find(value.field);
    });
    for (const JsonMember& member : *dict.get<Json::Object>()) {
      const std::string* word = member.value.get<std::string>();
      const std::string field = member.key == "type" ? "rope_type" : member.key;
      group.provenance.push_back(
          {field, word ? *word : member.value.text(), Origin::file, where + member.key});
    }
  }

  static void part_of_head(const LayerGroup& group, const Json& dict, Rope& told) {
    const Json* part = dict.find("partial_rotary_factor");
    const auto factor = part ? detail::real_number(*part) : std::nullopt;
    if (!factor || *factor <= 0 || *factor > 1 || group.cache_note.contains("MLA")) return;
    told.partial_rotary_factor = *factor;
    told.rotary_dim.reset();
  }

  Model& model_;
  const CommandLine& line_;
  std::string_view version_;
  std::vector<Finding>& findings_;
};

// How far no pair of a layer that rotates text meets an angle that `trained` tokens have not shown,
// where its frequencies are lower: pairs that made a full turn have shown all. Nothing: all have.
std::optional<std::int64_t> seen_up_to(const Model& model, const Model& told,
                                       std::int64_t trained) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t g = 0; g < std::min(model.groups.size(), told.groups.size()); ++g) {
    if (is_tower(model.groups[g].stack)) continue;
    const auto before = compile(model.groups[g]), now = compile(told.groups[g]);
    if (!before || !now || !before->rotate || !now->rotate) continue;
    for (std::int64_t r = 0; r < std::min(before->rotate->pairs(), now->rotate->pairs()); ++r) {
      const double shown = before->rotate->at(0, 0, r) * static_cast<double>(trained);
      if (shown >= 2 * std::numbers::pi || now->rotate->at(0, 0, r) <= 0) continue;
      least = std::min(least, std::ceil(shown / now->rotate->at(0, 0, r)));
    }
  }
  if (trained <= 0 || least > 0x1p53) return std::nullopt;
  return static_cast<std::int64_t>(least);
}

// A larger base that the line gives for a longer text stretches the context by hand: asked for, and
// no cure undoes it. Any other base than the file's is a mistake.
void tell_base_as_asked(const Model& model, const Model& told, std::int64_t length,
                        std::vector<Finding>& differ) {
  const double by = detail::stretch_of_base(model, told);
  if (length <= model.context || by <= 1) return;
  const std::optional<std::int64_t> reached = seen_up_to(model, told, model.context);
  // 2.5 and 2.6 are what people write for twice the length, and reach a little less.
  constexpr double nearly = 1.05;
  const bool reaches =
      !reached || static_cast<double>(length) <= nearly * static_cast<double>(*reached);
  for (Finding& one : differ) {
    if (one.code != "rope_theta") continue;
    one.severity = reaches ? Severity::note : Severity::warning;
    if (!reaches) one.position = reached;
    one.message =
        "as the line asks, a larger base for a longer text, which is NTK-aware scaling by " +
        number_text(std::round(by * 100) / 100) +
        (reached ? "; up to " + detail::grouped(*reached) +
                       " no pair meets an angle that training has not shown"
                 : "") +
        ": " + one.message;
    one.cure = reaches ? ""
                       : "posenc extend MODEL --to " + std::to_string(length) +
                             " says what each scaling does to short texts and long ones";
  }
}

// Megatron reads no file: a scaling that no argument says is lost, and nobody asked for that.
bool tell_as_omitted(const Model& told, std::vector<Finding>& differ) {
  const bool scales = std::ranges::any_of(told.groups, [](const LayerGroup& group) {
    const Rope* rope = detail::rope_of(group);
    return rope && !is_tower(group.stack) && !std::holds_alternative<Unscaled>(rope->scaling);
  });
  const auto lost = std::ranges::find(differ, "rope_scaling", &Finding::code);
  if (scales || lost == differ.end()) return false;
  lost->severity = Severity::error;
  lost->message = "no argument asks for the model's scaling: " + lost->message;
  lost->cure = "posenc translate MODEL --to megatron-core writes the arguments";
  return true;
}

// Whether a flag speaks of the rotation: else what differs is the engine's reading of the file.
bool asks_for_a_rotation(std::string_view command) {
  const auto line = detail::read_command_line(command);
  return line && std::ranges::any_of(line->flags, [](const CommandFlag& flag) {
           for (const std::string_view word :
                {"rope", "yarn", "override", "rotary", "scaling", "grp-attn"})
             if (flag.name.contains(word))
               return flag.name != "--override-kv" || flag.value.contains(".rope.");
           return false;
         });
}

// Megatron reads no file, and --use-rope-scaling has one factor: leaving it out takes all away.
void keep_factor_of_megatron(const Model& model, std::vector<Finding>& differ) {
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = detail::rope_of(group);
    const auto* llama3 = rope ? std::get_if<Llama3>(&rope->scaling) : nullptr;
    if (!llama3) continue;
    for (Finding& one : differ)
      if (one.code == "rope_scaling" && one.found.starts_with("llama3")) {
        one.message = "--use-rope-scaling has factor 8, and the model " +
                      number_text(llama3->factor) + " (Megatron-LM#6305)";
        one.cure = "pass rope_scaling_factor=" + number_text(llama3->factor) +
                   " to GPTModel in gpt_builders.py; without the flag the scaling is gone";
      }
    return;
  }
}

// What comes of a flag that the engine does not hear is part of that finding, whose cure it has.
void tell_as_unheard(std::vector<Finding>& differ) {
  for (Finding& one : differ) {
    if (one.code != "rope_scaling" && one.code != "rope_factors") continue;
    one.message = "as told of the flag: " + one.message;
    one.cure.clear();
  }
}

// A scaling that the line asks for is one finding with what follows from it, and no cure undoes it.
// It is good to know where the text that is asked for needs it, and deserves a look where none
// does.
void tell_as_asked(const Model& model, const Model& told, std::int64_t length, bool asks,
                   std::vector<Finding>& differ) {
  const auto scaling = std::ranges::find_if(differ, [](const Finding& one) {
    return one.code == "rope_scaling" || one.code == "rope_factors";
  });
  if (scaling == differ.end()) return;
  std::string consequences;
  for (const Finding& one : differ)
    if (one.code == "amplitude" || one.code == "logits")
      consequences += "; cos and sin go " + one.expected + " → " + one.found +
                      ", which is part of this scaling";
  const std::string code = scaling->code;
  std::int64_t reached = detail::reach(told);
  const detail::Recipe* recipe = detail::recipe_of(model);
  const bool as_published = detail::recipe_between(model, told) != nullptr;
  for (const LayerGroup& group : told.groups) {
    const Rope* rope = detail::rope_of(group);
    if (!rope || is_tower(group.stack)) continue;
    if (const auto* linear = std::get_if<Linear>(&rope->scaling))
      reached = std::max(
          reached, static_cast<std::int64_t>(static_cast<double>(model.context) * linear->factor));
  }
  const std::int64_t unscaled = detail::trained_length(model);
  const bool needed = length > unscaled && length <= reached;
  if (as_published && detail::reach(told) >= recipe->factor * static_cast<double>(recipe->trained))
    consequences += "; it is what " + std::string(recipe->source) + " publish";
  else if (as_published)
    consequences += "; it is the scaling that " + std::string(recipe->source) +
                    " publish, of a smaller factor than their " + number_text(recipe->factor);
  else if (recipe && length > model.context)
    consequences += "; " + std::string(recipe->source) + " publish factor " +
                    number_text(recipe->factor) + " of " + detail::grouped(recipe->trained);
  if (needed && unscaled < model.context)
    consequences += "; the model was trained at " + detail::grouped(unscaled) +
                    ", and reaches its context by a scaling such as this";
  const bool unneeded = asks && length > 0 && length <= unscaled;
  if (unneeded)
    consequences +=
        "; texts of " + detail::grouped(length) + " tokens are within the context, and lose by it";
  const bool loses_before = asks && needed && as_published;
  if (loses_before)
    consequences += "; it acts on every text, and those of up to " + detail::grouped(unscaled) +
                    " tokens lose by it (tools and chats are short ones)";
  std::erase_if(differ,
                [](const Finding& one) { return one.code == "amplitude" || one.code == "logits"; });
  for (Finding& one : differ) {
    if (one.code != code) continue;
    // Whether a ramp's ends are rounded: engines of both kinds run the same models.
    const bool of_rounding = !asks && one.expected.starts_with("truncate ");
    one.severity =
        needed || of_rounding || (as_published && !unneeded) ? Severity::note : Severity::warning;
    one.message = (asks                  ? "as the line asks: "
                   : one.found == "none" ? "the engine does not read the file's scaling: "
                                         : "no flag asks for it, the engine reads the file so: ") +
                  one.message + consequences;
    one.cure.clear();
    if (one.severity == Severity::warning && unneeded)
      one.cure = "drop it: the file itself reaches " + detail::grouped(model.context);
    if (!asks && one.found == "none" && model.trained_context > 0 &&
        model.trained_context < model.context)
      one.cure = "texts of up to " + detail::grouped(model.trained_context) +
                 " tokens need no scaling; longer ones an engine that reads it (posenc diff FILE "
                 "--engines all)";
    if (loses_before)
      one.cure = "leave it out where no text is longer than " + detail::grouped(unscaled) +
                 (detail::reach(told) > 2 * recipe->trained
                      ? "; a factor of 2 reaches " + detail::grouped(2 * recipe->trained) +
                            " and loses less"
                      : "");
  }
}

// A base of the line that stands in the way of the file's own is left out, and not written anew.
void leave_out_base(const CommandLine& line, std::vector<Finding>& differ) {
  if (line.engine != "llama.cpp" || !line.find("--rope-freq-base")) return;
  const bool of_koboldcpp = line.program.starts_with("koboldcpp");
  const std::string flag = of_koboldcpp ? "--ropeconfig" : "--rope-freq-base";
  for (Finding& one : differ) {
    if (one.code == "rope_theta" && one.cure.starts_with("write rope_theta"))
      one.cure = "leave " + flag + " out: the base, and the scaling, are the file's then";
    if (of_koboldcpp && one.code == "rope_scaling" && one.cure.starts_with("drop it"))
      one.cure = "as above: --ropeconfig sets both";
  }
}

}  // namespace

namespace detail {

Rope* mutable_rope(LayerGroup& group) {
  for (Scheme& scheme : group.schemes)
    if (Rope* rope = std::get_if<Rope>(&scheme)) return rope;
  return nullptr;
}

Expected<double> number_of_flag(const CommandFlag& flag) {
  const Expected<Json> json = detail::parse_json(flag.value, flag.name);
  const auto value = json ? detail::real_number(*json) : std::nullopt;
  if (value && std::abs(*value) < 0x1p50) return *value;
  return fail("command", flag.name + " must be a number", flag.value, "write it as 4 or 0.25");
}

Finding line_finding(std::string code, Severity severity, std::string_view found,
                     std::string message, std::string cure) {
  return {.code = std::move(code),
          .severity = severity,
          .found = printable(found, 100),
          .message = std::move(message),
          .cure = std::move(cure)};
}

}  // namespace detail

Expected<CommandReading> read_command(const Model& model, std::string_view command,
                                      std::string_view version) {
  POSENC_TRY(line, detail::read_command_line(command));
  if (!line.version.empty()) version = line.version;
  POSENC_TRY(asked, asked_length(line));
  CommandReading out{.length = asked};
  Model told = model;
  const auto finish = [&]() -> Expected<CommandReading> {
    POSENC_TRY(tokens, detail::tokens_of_a_request(model, out.reading.model, line, version, asked,
                                                   out.findings));
    out.length = tokens;
    return std::move(out);
  };
  if (line.engine != "llama.cpp")
    POSENC_CHECK(Overrides(told, line, version, out.findings).apply());
  // Megatron reads no file that a profile could read otherwise.
  if (line.engine == "megatron-core") {
    POSENC_TRY(engine, find_engine(line.engine));
    out.reading.engine = engine;
    line.version = version;
    POSENC_CHECK(detail::apply_megatron_flags(told, line, out.findings));
    out.reading.model = std::move(told);
    return finish();
  }
  const std::string at = line.version.empty() ? "" : "@" + line.version;
  POSENC_TRY(reading, read_as(told, std::string(line.engine) + at, asked));
  out.reading = std::move(reading);
  if (!out.reading.refused.empty()) {
    out.findings.push_back(line_finding("refused", Severity::error, "", out.reading.refused,
                                        "mend what the engine refuses, or start another"));
    return out;
  }
  if (line.engine == "llama.cpp")
    POSENC_CHECK(detail::apply_llama_flags(out.reading.model, line, asked, out.findings));
  return finish();
}

Expected<std::vector<Finding>> command_differences(const Model& model, std::string_view command,
                                                   std::int64_t length, std::string_view version) {
  POSENC_TRY(read, read_command(model, command, version));
  std::vector<Finding> findings = std::move(read.findings);
  if (read.reading.refused.empty()) {
    POSENC_TRY(differ, differences(model, read.reading.model, length > 0 ? length : read.length));
    // A length that the line overrides and serves is as asked.
    if (read.reading.model.context > model.context)
      std::erase_if(differ, [](const Finding& one) { return one.code == "context"; });
    // A base that is lost and what that does to a text are one finding.
    const auto lost = std::ranges::find(findings, "theta_missing", &Finding::code);
    const auto base = std::ranges::find(differ, "rope_theta", &Finding::code);
    if (lost != findings.end() && base != differ.end()) {
      lost->layers = base->layers;
      lost->position = base->position;
      lost->message += ": " + base->message;
      std::erase_if(differ, [](const Finding& one) { return one.code == "rope_theta"; });
    }
    // What an engine drops was asked for, and is not what it runs.
    const bool unheard = std::ranges::any_of(findings, [](const Finding& one) {
      return one.code == "flag_dropped" || one.code == "flag_unread";
    });
    const bool omitted = !unheard && read.reading.engine.name == "megatron-core" &&
                         tell_as_omitted(read.reading.model, differ);
    if (unheard) tell_as_unheard(differ);
    if (!omitted && !unheard)
      tell_as_asked(model, read.reading.model, length > 0 ? length : read.length,
                    asks_for_a_rotation(command), differ);
    if (!unheard && read.reading.engine.name == "megatron-core")
      keep_factor_of_megatron(model, differ);
    tell_base_as_asked(model, read.reading.model, length > 0 ? length : read.length, differ);
    leave_out_base(*detail::read_command_line(command), differ);
    findings.insert(findings.end(), differ.begin(), differ.end());
    for (const EngineNote& note : read.reading.notes)
      if (note.kind == EngineNote::Kind::lost && note.what.contains("whole heads rotate"))
        for (Finding& one : findings)
          if (one.code == "rotary_dim")
            one.cure = "no key of the file changes it: another engine, or another version of it";
    for (const EngineNote& note : read.reading.notes)
      findings.push_back(
          {.code = std::string(name(note.kind)), .severity = Severity::note, .message = note.what});
  }
  // An override that does nothing is why the text is too long.
  if (std::ranges::find(findings, "override_unread", &Finding::code) != findings.end())
    for (Finding& one : findings)
      if (one.code == "beyond_context") one.severity = Severity::note;
  // What other builds do stands behind what this one does.
  std::ranges::stable_sort(findings, {}, [](const Finding& one) {
    const bool by_version = one.code == "version_needed" ||
                            (one.severity == Severity::note &&
                             (one.code == "context_refused" || one.code == "context_not_lifted"));
    return std::pair(one.severity, by_version);
  });
  return findings;
}

}  // namespace posenc
