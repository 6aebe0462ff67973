// What the versions of engines tell: faults that are known, profiles that stand in for others, and
// flags that only newer ones lack.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/tools/command_line.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

// Versions as somebody named them, as the tag of an image has them, or as a log begins.
std::vector<std::string> versions_in(std::span<const Exhibit> evidence,
                                     std::span<const std::string> engines) {
  std::vector<std::string> all(engines.begin(), engines.end());
  for (const Exhibit& one : evidence) {
    if (one.kind == ExhibitKind::command) {
      const auto line = read_command_line(one.text);
      if (line && !line->version.empty()) all.push_back(line->engine + "@" + line->version);
    } else if (one.kind == ExhibitKind::log) {
      const auto log = read_log(one.text);
      if (const auto* told = log ? log->find("vllm_version") : nullptr)
        all.push_back("vllm@" + told->text);
      if (const auto* told = log ? log->find("llama_build") : nullptr)
        all.push_back("llama.cpp@" + told->text);
    }
  }
  return all;
}

std::string version_of(std::string_view engine) {
  return std::string(engine.substr(engine.find('@') + 1));
}

// vLLM and SGLang read configurations by the transformers that is installed: an older version may
// stand on transformers 4, to which a file of transformers 5 is another model.
std::optional<Diagnosed> transformers_beneath(const Model& model,
                                              std::span<const std::string> engines,
                                              const std::string& engine, std::int64_t length) {
  // vLLM 0.24 and later refuse transformers 4; SGLang asks for one version: 0.5.9 for 4.57, and
  // 0.5.10 for 5.3.
  const bool reads_by_it =
      (engine.starts_with("vllm@") && is_before(version_of(engine), "0.24")) ||
      (engine.starts_with("sglang@") && is_before(version_of(engine), "0.5.10"));
  const bool told = std::ranges::any_of(
      engines, [](const std::string& one) { return one.starts_with("transformers@"); });
  if (!reads_by_it || told) return std::nullopt;
  const auto before = engine_differences(model, "transformers@4", length);
  if (!before) return std::nullopt;
  for (const Finding& finding : before->findings) {
    if (finding.severity != Severity::error) continue;
    Diagnosed out{.engine = engine.substr(0, engine.find('@')),
                  .version = version_of(engine),
                  .sure = "by the version"};
    out.finding = finding;
    out.finding.code = "transformers_beneath";
    out.finding.severity = Severity::warning;
    // Its classes took getattr(config, "rope_theta", 10000) until then, whatever lies beneath.
    const bool reads_itself = engine.starts_with("vllm@") && is_before(version_of(engine), "0.12");
    out.finding.message = (reads_itself ? "vLLM before 0.12 reads keys at the top alone, and not "
                                          "rope_parameters: "
                                        : "with transformers 4 beneath " + engine + ": ") +
                          finding.message;
    out.finding.cure = reads_itself
                           ? "write rope_theta (and rope_scaling) at the top too, or vLLM 0.12 or "
                             "later"
                           : "pip install -U transformers (5.0 or later), or write rope_theta at "
                             "the top too";
    return out;
  }
  return std::nullopt;
}

// Since when the engine of a version that is older has a class for the model; "": it has one, or
// that is not known.
std::string_view class_since(const Model& model, const std::string& engine) {
  const std::size_t at = engine.find('@');
  const bool of_gguf = !model.files.empty() && model.files.front().format == FileFormat::gguf;
  if (at == engine.npos || of_gguf) return "";
  const std::string_view name = std::string_view(engine).substr(0, at);
  std::string_view type = model.family, since = first_version(name, type);
  constexpr std::string_view of_text = "_text";
  if (since.empty() && type.ends_with(of_text)) {
    type.remove_suffix(of_text.size());
    since = first_version(name, type);
  }
  return is_before(version_of(engine), since) ? since : "";
}

// A class that came later: the engine ends with an error, or other code runs the model.
Diagnosed without_a_class(const Model& model, const std::string& engine, std::string_view since) {
  const std::string name = engine.substr(0, engine.find('@')), version = version_of(engine);
  const bool of_transformers = name == "transformers";
  // vLLM and SGLang run transformers' class where there is one.
  constexpr std::string_view of_five = "5";
  const std::string_view beneath = first_version("transformers", model.family);
  const bool has_other = !of_transformers && !model.own_code && beneath < of_five;
  Diagnosed out{.engine = name, .version = version, .sure = "by the version"};
  out.finding = {
      .code = "class_missing",
      .severity = has_other ? Severity::warning : Severity::error,
      .expected = std::string(since) + " or later",
      .found = version,
      .message = name + " " + version + " has no class for " + model.family + ": " +
                 (of_transformers
                      ? "it ends with 'model type … is not recognized', unless the code beside the "
                        "weights runs (trust_remote_code)"
                  : has_other ? "it ends with 'model architectures … are not supported', or runs "
                                "transformers' class, where that is new enough"
                              : "it ends with 'model architectures … are not supported'"),
      .cure = "pip install -U " + name + " (" + std::string(since) + " or later)"};
  return out;
}

// "0.22 or later"; "": nobody has looked behind the range, or a version is no cure.
std::string version_that_mends(const VersionFault& fault) {
  std::string_view below = fault.below;
  if (fault.cure.contains(below)) return std::string(below) + " or later";
  if (below.ends_with(".0")) below.remove_suffix(2);
  const std::string words = std::string(below) + " or later";
  return fault.cure.contains(words) ? words : "";
}

}  // namespace

std::vector<Diagnosed> told_by_versions(const Model& model, std::span<const Exhibit> evidence,
                                        std::span<const std::string> engines, std::int64_t length) {
  std::vector<Diagnosed> all;
  const auto has_fault = [&](const std::string& engine) {
    return engine.contains('@') && !version_faults(model, engine).empty();
  };
  // pip lists transformers beside whatever runs the model.
  const auto is_beside = [&](const std::string& engine) {
    return engine.starts_with("transformers@") &&
           std::ranges::any_of(engines, [](const std::string& other) {
             return !other.starts_with("transformers");
           });
  };
  // A version that nobody read is judged by another's profile, and it is said where nothing worse
  // is known of it.
  for (const std::string& engine : engines) {
    const auto reading = read_as(model, engine, length);
    if (!reading) continue;
    for (const EngineNote& note : reading->notes) {
      if (!note.what.starts_with("no profile of ")) continue;
      if (auto beneath = transformers_beneath(model, engines, engine, length))
        all.push_back(*std::move(beneath));
      if (has_fault(engine) || is_beside(engine) || !class_since(model, engine).empty()) continue;
      Diagnosed out{.engine = std::string(reading->engine.name),
                    .version = std::string(reading->engine.version),
                    .sure = "by the version"};
      out.finding = {.code = "version_unknown",
                     .severity = Severity::note,
                     .expected = version_of(engine),
                     .found = std::string(reading->engine.version),
                     .message = note.what + ": the one that runs may read the file otherwise"};
      all.push_back(std::move(out));
    }
  }
  std::ranges::move(faults_of(model, versions_in(evidence, engines)), std::back_inserter(all));
  const bool is_told = std::ranges::any_of(
      all, [](const Diagnosed& one) { return one.finding.code == "version_fault"; });
  if (!is_told)
    for (const std::string& engine : versions_in(evidence, engines))
      if (const std::string_view since = class_since(model, engine); !since.empty())
        all.push_back(without_a_class(model, engine, since));
  return all;
}

Finding finding_of(const VersionFault& fault, const std::string& version) {
  const std::string mended = version_that_mends(fault);
  // "It" is told apart where the sentence stands alone, as a verdict.
  const bool of_it = fault.what.starts_with("it ") || fault.what.starts_with("its ");
  const std::string subject = of_it ? std::string(fault.engine) + " " + version + ": " : "";
  return {.code = "version_fault",
          .severity = fault.slight ? Severity::warning : Severity::error,
          .expected = mended,
          .found = mended.empty() ? "" : version,
          .message = subject + std::string(fault.what) + " (" + std::string(fault.report) + ")",
          .cure = std::string(fault.cure)};
}

std::vector<Diagnosed> faults_of(const Model& model, std::span<const std::string> versions) {
  std::vector<Diagnosed> all;
  for (const std::string& version : versions)
    for (const VersionFault& fault : version_faults(model, version)) {
      Diagnosed out{.engine = std::string(fault.engine),
                    .version = version_of(version),
                    .sure = "by a report"};
      out.finding = finding_of(fault, version_of(version));
      all.push_back(std::move(out));
    }
  return all;
}

// What an older version still has is no error of its line.
void removed_later(std::vector<Finding>& found, std::string_view engine,
                   std::span<const std::string> engines) {
  for (const std::string& version : engines) {
    if (engine != "vllm" || !version.starts_with("vllm@") ||
        !is_before(version_of(version), "0.11.1"))
      continue;
    for (Finding& one : found) {
      if (one.code != "flag_removed") continue;
      one.severity = Severity::note;
      one.message = "this version has it, 0.11.1 and later no more";
    }
  }
}

}  // namespace posenc::detail
