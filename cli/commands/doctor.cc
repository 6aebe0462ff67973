// posenc doctor: whatever a person has, and what is wrong with position.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/sarif.h"
#include "cli/pages/terminal.h"
#include "posenc/doctor.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

std::vector<Exhibit> evidence_of(const std::string& given) {
  std::error_code none;
  const auto kind = fs::status(given, none).type();
  if (given != "-" && kind != fs::file_type::fifo && kind != fs::file_type::character)
    return exhibits_of(given);
  Expected<std::string> text = named_text(given, largest_log);
  std::vector<Exhibit> all;
  all.push_back(text ? text_exhibit("stdin", *std::move(text))
                     : unusable_exhibit(given, text.error()));
  return all;
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

// As the page of findings has it: with the one engine that it is about.
Finding with_engine(const Diagnosed& one) {
  Finding finding = one.finding;
  finding.engines.clear();
  if (!one.engine.empty())
    finding.engines = {one.engine + (one.version.empty() ? "" : "@" + one.version)};
  return finding;
}

std::string sarif(const Diagnosis& found) {
  std::vector<LintedFile> files;
  for (const Exhibit& one : found.evidence) {
    LintedFile file{one.name, {}};
    for (const Diagnosed& each : found.findings)
      if (each.where == one.name || each.where.starts_with(one.name + ":"))
        file.findings.push_back(each.finding);
    files.push_back(std::move(file));
  }
  return sarif(files);
}

// What the verdict has not said of it already: the sentence above the findings is the first one's.
std::string unsaid(const std::string& message, const std::string& verdict) {
  if (verdict.contains(message)) return "";
  const std::size_t part = message.find("; ");
  return part != message.npos && verdict.contains(message.substr(0, part))
             ? message.substr(part + 2)
             : message;
}

std::string diagnosis_page(const Diagnosis& found, const Terminal& term) {
  std::string out =
      evidence_page(found, term) + "\n" + term.bold(wrapped(found.verdict, 0, 0)) + "\n";
  std::vector<Finding> findings;
  findings.reserve(found.findings.size());
  for (const Diagnosed& one : found.findings) {
    findings.push_back(with_engine(one));
    findings.back().message = unsaid(one.finding.message, found.verdict);
  }
  if (!findings.empty()) out += "\n" + findings_page(findings, term, "");
  if (!found.next.empty()) out += "\n" + term.dim("next   " + found.next) + "\n";
  return out;
}

Run define_doctor(CLI::App& app) {
  struct Options {
    std::vector<std::string> evidence, engines;
    std::int64_t at = 0;
    bool json = false, sarif = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option(
         "EVIDENCE", options->evidence,
         "Whatever there is: a config.json, params.json, GGUF or folder, a name (in the "
         "hub's local cache, or bundled), a log or traceback, a command line in quotes, a "
         "Modelfile, settings of LM Studio, koboldcpp or tabbyAPI, a trainer's YAML, printed "
         "inv_freq, pip's list, what you saw in your own words, or - for standard input. The first "
         "model is what should run")
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
      ->allow_extra_args(false)
      ->type_name("ENGINES");
  CLI::Option* json =
      app.add_flag("--json", options->json)
          ->description("{\"evidence\", \"verdict\", \"findings\", \"next\"} (docs/json.md)");
  app.add_flag("--sarif", options->sarif, "The findings as SARIF 2.1.0, for code hosts")
      ->excludes(json);
  app.footer(
      "Says how it took each thing, then what is wrong in one sentence, then the findings by what "
      "they do to a\n"
      "text. Exit code 0: nothing wrong, 1: something found, 2: nothing usable.\n\n"
      "Examples:\n"
      "  posenc doctor ./my-model\n"
      "  posenc doctor llama-3.1-8b server.log\n"
      "  posenc doctor config.json 'vllm serve M --max-model-len 131072 --hf-overrides …'\n"
      "  posenc doctor config.json model.gguf --engine llama.cpp --at 32k\n"
      "  posenc doctor qwen3-8b 'gibberish after 8k tokens in llama.cpp b4880'\n"
      "  posenc doctor 'vllm serve Qwen/Qwen3-8B --max-model-len 131072'\n"
      "  curl -sL https://huggingface.co/OWNER/NAME/resolve/main/config.json | posenc doctor -");
  return [options, &app]() -> Expected<int> {
    std::vector<Exhibit> evidence;
    for (const std::string& given : options->evidence)
      for (Exhibit& one : evidence_of(given)) evidence.push_back(std::move(one));
    POSENC_TRY(found,
               diagnose(std::move(evidence), {.length = options->at, .engines = options->engines}));
    if (options->json)
      write_out("{}\n", to_json(found));
    else if (options->sarif)
      write_out("{}\n", sarif(found));
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
                                    define_doctor, nullptr, true};

}  // namespace posenc::cli
