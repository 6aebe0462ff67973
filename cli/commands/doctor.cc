// posenc doctor: whatever a person has, and what is wrong with position.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/arguments/model_names.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/terminal.h"
#include "posenc/doctor.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

// Settings of a trainer beside an adapter.
std::vector<Exhibit> evidence_in(const std::string& folder) {
  std::error_code none;
  const bool adapter = fs::exists(fs::path(folder) / "adapter_config.json", none) &&
                       !fs::exists(fs::path(folder) / "config.json", none);
  if (!adapter) {
    Expected<Model> model = named_model(folder);
    if (!model) return {unusable_exhibit(folder, model.error())};
    return {model_exhibit(folder, std::move(*model))};
  }
  std::vector<Exhibit> all;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".yaml") && !path.ends_with(".yml")) continue;
    Expected<std::string> text = named_text(path, std::size_t{1} << 20);
    if (text) all.push_back(text_exhibit(path, std::move(*text)));
  }
  if (all.empty())
    all.push_back(unusable_exhibit(
        folder, {.where = "doctor",
                 .rule = "an adapter without the settings of its training",
                 .got = "",
                 .cure = "put the trainer's YAML (cutoff_len, sequence_len) into the folder"}));
  return all;
}

bool is_text(const std::string& bytes) {
  return !std::string_view(bytes).substr(0, 4096).contains('\0');
}

std::vector<Exhibit> evidence_of(const std::string& given) {
  std::error_code none;
  const bool there = given.size() < 4096 && fs::exists(given, none);
  if (there && fs::is_directory(given, none)) return evidence_in(given);
  if (there && given.ends_with(".gguf")) {
    Expected<Model> model = named_model(given);
    if (!model) return {unusable_exhibit(given, model.error())};
    return {model_exhibit(given, std::move(*model))};
  }
  if (there && (given.ends_with(".npy") || given.ends_with(".safetensors")))
    return {unusable_exhibit(
        given, {.where = "doctor",
                .rule = "tensors",
                .got = "",
                .cure = given.ends_with(".npy")
                            ? "posenc identify --after " + given +
                                  " --repeated --model MODEL tells what rotated them"
                            : "give the model's folder, or the config.json beside it"})};
  if (given == "-" || there) {
    Expected<std::string> text = named_text(given, largest_log);
    if (!text) return {unusable_exhibit(given, text.error())};
    if (is_text(*text)) return {text_exhibit(given == "-" ? "stdin" : given, std::move(*text))};
    Expected<Model> model = read_model_bytes(std::as_bytes(std::span(*text)), given);
    if (!model) return {unusable_exhibit(given, model.error())};
    return {model_exhibit(given, std::move(*model))};
  }
  if (given.find_first_of(" \n\t") != given.npos) return {text_exhibit("command", given)};
  Expected<Model> model = named_model(given);
  if (!model) return {unusable_exhibit(given, model.error())};
  return {model_exhibit(given, std::move(*model))};
}

std::string evidence_page(const Diagnosis& found, const Terminal& term) {
  constexpr std::size_t widest = 28;
  std::size_t width = 0;
  for (const Exhibit& one : found.evidence)
    if (const std::size_t wide = columns(one.name); wide <= widest)
      width = std::max(width, wide + 2);
  std::string out;
  for (const Exhibit& one : found.evidence) {
    const std::string name = printable(one.name, std::string::npos);
    const bool alone = columns(name) > widest;
    const std::size_t indent = alone ? 4 : width;
    out +=
        term.dim(alone ? name + "\n    " : padded(name, width)) +
        wrapped((one.kind == ExhibitKind::unusable ? "not used: " : "") + one.as, indent, indent) +
        "\n";
  }
  return out;
}

std::string diagnosis_page(const Diagnosis& found, const Terminal& term) {
  std::string out =
      evidence_page(found, term) + "\n" + term.bold(wrapped(found.verdict, 0, 0)) + "\n";
  std::vector<Finding> findings;
  for (const Diagnosed& one : found.findings) {
    Finding finding = one.finding;
    finding.engines.clear();
    if (!one.engine.empty())
      finding.engines = {one.engine + (one.version.empty() ? "" : "@" + one.version)};
    findings.push_back(std::move(finding));
  }
  if (!findings.empty()) out += "\n" + findings_page(findings, term, "");
  if (!found.next.empty()) out += "\n" + term.dim("next   " + found.next) + "\n";
  return out;
}

Run define_doctor(CLI::App& app) {
  struct Options {
    std::vector<std::string> evidence, engines;
    std::int64_t at = 0;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("EVIDENCE", options->evidence,
                 "Whatever there is: a config.json, params.json, GGUF or folder, a name (in the "
                 "hub's local cache, or bundled), a log, a command line in quotes, a Modelfile, a "
                 "trainer's YAML, printed inv_freq, or - for standard input. The first model is "
                 "what should run")
      ->type_name("EVIDENCE")
      ->required();
  app.add_option("--at,--length", options->at,
                 "Tokens that it is to run for (131072, 128k); default: what the evidence says")
      ->transform(token_count())
      ->default_str("");
  app.add_option(
         "--engine,--engines", options->engines,
         "What runs it (vllm, llama.cpp, transformers@5.12), beside what the evidence tells")
      ->delimiter(',')
      ->type_name("ENGINES");
  app.add_flag("--json", options->json)
      ->description("{\"evidence\", \"verdict\", \"findings\", \"next\"} (docs/json.md)");
  app.footer(
      "Says how it took each thing, then what is wrong in one sentence, then the findings by what "
      "they do to a\n"
      "text. Exit code 0: nothing wrong, 1: something found, 2: nothing usable.\n\n"
      "Examples:\n"
      "  posenc doctor ./my-model\n"
      "  posenc doctor llama-3.1-8b server.log\n"
      "  posenc doctor config.json 'vllm serve M --max-model-len 131072 --hf-overrides …'\n"
      "  posenc doctor config.json model.gguf --engine llama.cpp --at 32k\n"
      "  posenc doctor qwen3-8b Modelfile\n"
      "  curl -sL https://huggingface.co/OWNER/NAME/resolve/main/config.json | posenc doctor -");
  return [options, &app]() -> Expected<int> {
    std::vector<Exhibit> evidence;
    for (const std::string& given : options->evidence)
      for (Exhibit& one : evidence_of(given)) evidence.push_back(std::move(one));
    POSENC_TRY(found,
               diagnose(std::move(evidence), {.length = options->at, .engines = options->engines}));
    if (options->json)
      write_out("{}\n", to_json(found));
    else
      write_out("{}", diagnosis_page(found, terminal(no_color(app))));
    if (std::ranges::all_of(found.evidence,
                            [](const Exhibit& one) { return one.kind == ExhibitKind::unusable; }))
      return 2;
    return std::ranges::all_of(
               found.findings,
               [](const Diagnosed& one) { return one.finding.severity == Severity::note; })
               ? 0
               : 1;
  };
}

}  // namespace

extern const Command doctor_command{"doctor", "what is wrong with position, from whatever you have",
                                    define_doctor};

}  // namespace posenc::cli
