// An adapter beside its base: which rotation it was trained with, as its trainer's settings tell,
// and what the base has.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/text/json_writer.h"
#include "src/tools/command_line.h"
#include "src/tools/told_rope.h"
#include "src/tools/training.h"

namespace posenc {
namespace {

using detail::grouped;

// LLaMA-Factory's model_utils/rope.py: the factor is the number of contexts that the length fills,
// rounded up.
Expected<Model> as_trained(const Model& base, std::string_view type, std::int64_t length,
                           std::vector<Finding>& findings) {
  const double factor = std::ceil(static_cast<double>(length) / static_cast<double>(base.context));
  detail::JsonWriter json;
  json.object().member("rope_type", type).member("factor", factor);
  if (type == "yarn" || type == "llama3")
    json.member("original_max_position_embeddings", base.context);
  if (type == "llama3") json.member("low_freq_factor", 1.0).member("high_freq_factor", 4.0);
  json.end();
  POSENC_TRY(dict, detail::parse_json(json.text, "rope_scaling"));
  Model trained = base;
  for (LayerGroup& group : trained.groups) {
    Rope* rope = detail::mutable_rope(group);
    if (!rope || is_tower(group.stack)) continue;
    if (auto told = detail::told_rope(*rope, dict, {.context = base.context}, findings))
      *rope = *std::move(told);
  }
  return trained;
}

Finding of_adapter(std::string code, Severity severity, std::string expected, std::string found,
                   std::string message, std::string cure) {
  return {.code = std::move(code),
          .severity = severity,
          .expected = std::move(expected),
          .found = std::move(found),
          .message = std::move(message),
          .cure = std::move(cure)};
}

// Where a trainer's dictionary has no trained length, transformers takes the file's context.
Expected<detail::Json> with_length(const detail::Json& dict, std::int64_t context) {
  const detail::Json* type = dict.find("rope_type");
  if (!type) type = dict.find("type");
  const std::string* word = type ? type->get<std::string>() : nullptr;
  constexpr std::string_view original = "original_max_position_embeddings";
  if (!word || *word != "yarn" || dict.find(original) || context < 1) return dict;
  detail::JsonWriter json;
  json.object();
  for (const auto& member : *dict.get<detail::Json::Object>())
    json.key(member.key).json(member.value.text());
  json.member(original, context).end();
  return detail::parse_json(json.text, "rope_scaling");
}

// A scaling that the trainer puts into the configuration, and what it loses there.
Expected<Model> with_override(const Model& base, const detail::Training& told,
                              std::vector<Finding>& findings) {
  Model trained = base;
  bool lost = false;
  POSENC_TRY(dict, with_length(*told.override_dict, base.context));
  for (LayerGroup& group : trained.groups) {
    Rope* rope = detail::mutable_rope(group);
    if (!rope || is_tower(group.stack)) continue;
    const double theta = rope->rope_theta;
    auto now = detail::told_rope(*rope, dict, {.context = base.context}, findings);
    if (!now) continue;
    lost |= !told.override_dict->find("rope_theta") && theta != 10000;
    *rope = *std::move(now);
  }
  if (lost)
    findings.push_back(of_adapter(
        // What a trainer makes of its own flag, its version tells.
        "theta_missing",
        told.override_place == told.override_key ? Severity::warning : Severity::error, {},
        "rope_theta 10000",
        "from transformers 5.0 on the override " +
            (told.override_place.empty() ? "" : "(" + told.override_place + ") ") +
            "replaces all of rope_parameters, the base with it: loading ends with an error (5.19 "
            "and "
            "5.24 have no base then), or runs by 10000; transformers 4 keeps it",
        "write rope_theta of the model beside rope_type"));
  return trained;
}

// The same beside what it replaces.
Expected<std::vector<Finding>> overridden(const Model& base, const detail::Training& told) {
  std::vector<Finding> findings;
  POSENC_TRY(trained, with_override(base, told, findings));
  POSENC_TRY(differ, differences(base, trained, told.length));
  for (Finding& finding : differ) {
    if (finding.code != "rope_scaling" && finding.code != "rope_factors") continue;
    finding.severity = Severity::note;
    finding.message = "as the training asks: " + finding.message;
    finding.cure = "serve what was trained with the same scaling";
    findings.push_back(std::move(finding));
  }
  return findings;
}

Finding by_unsloth(const Model& base, std::int64_t length) {
  const double factor = static_cast<double>(length) / static_cast<double>(base.context);
  const Rope* own = nullptr;
  for (const LayerGroup& group : base.groups)
    if (!is_tower(group.stack) && !own) own = detail::rope_of(group);
  const bool scaled = own && !std::holds_alternative<Unscaled>(own->scaling);
  return of_adapter(
      "scaling_by_length", Severity::warning, grouped(base.context), grouped(length),
      "Unsloth divides positions by " + number_text(factor) +
          " (linear) where max_seq_length is beyond the file's context" +
          (scaled ? ", in place of the file's own " + std::string(info(own->scaling).name) +
                        ", and on transformers 5 without its base: text breaks far earlier"
                  : ""),
      scaled ? "max_seq_length " + std::to_string(base.context) +
                   ", or pip install -U unsloth (July 2026 or later keeps the file's scaling)"
             : "max_seq_length " + std::to_string(base.context) +
                   ", or serve what was trained with the same linear scaling");
}

// A trainer's program that runs a model, with an engine behind it or its own code.
std::vector<Finding> served(const Model& base, const detail::Training& told) {
  if (base.context == 0 || told.length <= base.context) return {};
  return {of_adapter(
      "wrapper_scaling", Severity::warning, grouped(base.context), grouped(told.length),
      told.scaling ? "the program sets " + *told.scaling +
                         " in the configuration that it loads itself; an engine behind it "
                         "(--infer_backend) may read the file, which has no scaling, and serve " +
                         grouped(base.context) + " tokens"
                   : "more tokens than the model is made for, and no scaling is asked for",
      "write rope_scaling and max_position_embeddings into the config.json: posenc extend MODEL "
      "--to " +
          std::to_string(told.length) + " --engine transformers")};
}

// Texts beyond the base's context, and no scaling.
Finding unscaled(const Model& base, const detail::Training& told) {
  const std::string tokens = grouped(told.length);
  if (!told.whole)
    return of_adapter(
        "adapter_base_context", Severity::error, grouped(base.context), tokens,
        "the adapter was trained on texts longer than the base is made for, and no scaling is "
        "recorded: its weights have learned angles that the base's never saw, unscaled",
        "before it is trained: a scaling in the trainer's settings (rope_scaling), or texts of up "
        "to " +
            std::to_string(base.context) +
            "; of one that is trained: serve it without a scaling, at the length it was trained "
            "on, since a scaling would give it other angles");
  return of_adapter(
      "training_beyond_context", Severity::warning, grouped(base.context), tokens,
      (told.prompt > 0 && told.prompt + told.answer == told.length
           ? told.sum_text() + " = " + tokens + ": "
           : "") +
          "the weights are trained on texts longer than the model is made for, unscaled: angles "
          "that it has never seen, which much training alone makes it learn; " +
          (told.promised > base.context
               ? "max_position_embeddings " + grouped(told.promised) +
                     " by override is a promise, and changes no angle"
               : "the configuration that is saved still says " + grouped(base.context)),
      "set a scaling or a larger rope_theta in the config.json before training: posenc extend "
      "MODEL --to " +
          std::to_string(told.length) + " --train");
}

}  // namespace

Expected<TrainerReading> read_trainer(const Model& base, std::string_view settings) {
  const auto line = detail::training_of_line(settings);
  POSENC_TRY(told, detail::read_training(line ? line->settings : settings));
  TrainerReading out{.model = base, .length = told.length};
  const bool beyond = base.context > 0 && told.length > base.context && !told.serves;
  if (told.override_dict) {
    POSENC_TRY(trained, with_override(base, told, out.findings));
    out.model = std::move(trained);
  } else if (beyond && told.scaling) {
    POSENC_TRY(trained, as_trained(base, *told.scaling, told.length, out.findings));
    out.model = std::move(trained);
  } else if (beyond && told.of_unsloth) {
    out.findings.push_back(by_unsloth(base, told.length));
  }
  for (Finding& finding : detail::contradictions(told)) out.findings.push_back(std::move(finding));
  return out;
}

Expected<std::vector<Finding>> adapter_differences(const Model& base, std::string_view settings) {
  POSENC_TRY(told, detail::read_training(settings));
  if (told.override_dict) return overridden(base, told);
  if (told.serves) return served(base, told);
  std::vector<Finding> findings;
  const std::int64_t length = told.length;
  const auto& type = told.scaling;
  if (length == 0 && told.packs_rows) return findings;
  if (length == 0) {
    findings.push_back(of_adapter(
        "adapter_length", Severity::note, {}, {},
        "nothing tells how long the texts were that it was trained on",
        "put the trainer's YAML (cutoff_len, sequence_len, max_length) beside the adapter"));
    return findings;
  }
  const std::string tokens = grouped(length);
  // The file's own scaling is trained with as well.
  const bool reached = !type && !told.of_unsloth && length <= detail::reach(base);
  if (base.context == 0 || length <= base.context || reached) {
    if (type)
      findings.push_back(of_adapter(
          "adapter_scaling_unused", Severity::note, {}, *type,
          "rope_scaling " + *type + " was asked for " + tokens +
              " tokens, which the base has without: LLaMA-Factory then sets none in training",
          {}));
    return findings;
  }
  if (!type && told.of_unsloth) {
    findings.push_back(by_unsloth(base, length));
    return findings;
  }
  if (!type) {
    const Rope* rope = detail::rope_of_text(base);
    const bool raises_base = rope && told.base > rope->rope_theta;
    if (raises_base)
      findings.push_back(of_adapter("rope_theta", Severity::note, number_text(rope->rope_theta),
                                    number_text(told.base),
                                    "the training raises the base, so that longer texts meet "
                                    "slower angles; what is saved has it",
                                    "serve it with the saved configuration"));
    else if (!told.refuses_override)
      findings.push_back(unscaled(base, told));
    return findings;
  }
  POSENC_TRY(trained, as_trained(base, *type, length, findings));
  POSENC_TRY(differ, differences(trained, base, length));
  for (Finding& finding : differ) {
    if (finding.severity != Severity::error) continue;
    if (told.whole) {
      finding.severity = Severity::note;
      finding.message =
          "the trainer trains with this scaling, and writes it into the configuration that it "
          "saves: " +
          finding.message;
      finding.cure = "serve the saved model as it is";
    } else {
      finding.cure =
          "serve base and adapter with the scaling of the training; LLaMA-Factory's own inference "
          "takes factor 2, whatever the training had";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace posenc
