// posenc diff: where two models treat position differently, or a model and what engines make of it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/command_text.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/arguments/position.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

std::string about(const Model& model) {
  std::string text = model.family;
  if (!model.files.empty())
    text += (text.empty() ? "" : " · ") + std::string(name(model.files.front().format));
  if (!model.origin.empty()) text += " · " + model.origin;
  return text;
}

std::string page(const Model& a, const Model& b, const std::vector<Finding>& findings,
                 const Terminal& term) {
  std::string out;
  for (const auto& [label, model] : {std::pair("expected", &a), std::pair("found", &b)})
    out += term.dim(padded(label, 10)) + term.bold(model->name) + "  " +
           term.dim(cut(about(*model),
                        page_width() - 12 - std::min<std::size_t>(columns(model->name), 40))) +
           "\n";
  return out + "\n" + findings_page(findings, term, "Both treat position alike.");
}

struct DiffOptions {
  std::string expected, found, log, command;
  std::vector<std::string> engines;
  std::int64_t at = 0;
  bool json = false;
};

// A folder of PEFT: an adapter that is no model by itself.
bool is_adapter(const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::path path(folder);
  return std::filesystem::exists(path / "adapter_config.json", ignored) &&
         !std::filesystem::exists(path / "config.json", ignored);
}

// All YAML files of the folder, which say how it was trained.
Expected<std::string> settings_in(const std::string& folder) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".yaml" || entry.path().extension() == ".yml")
      names.push_back(entry.path().string());
  std::ranges::sort(names);
  std::string all;
  for (const std::string& name : names) {
    POSENC_TRY(text, named_text(name, most));
    all += text + "\n";
  }
  return all;
}

Expected<int> diff_adapter(const DiffOptions& options, const Model& base, const Terminal& term) {
  POSENC_TRY(settings, settings_in(options.found));
  POSENC_TRY(findings, adapter_differences(base, settings));
  if (options.json)
    write_out("{{\"equal\":{},\"expected\":{},\"adapter\":{},\"findings\":{}}}\n",
              only_notes(findings), json_string(base.name), json_string(options.found),
              to_json(findings));
  else
    write_out("{}  {}\n\n{}", term.bold(base.name), term.dim("under the adapter " + options.found),
              findings_page(findings, term, "The adapter was trained with the base's rotation."));
  return only_notes(findings) ? 0 : 1;
}

Expected<int> diff_files(const DiffOptions& options, const Model& expected, const Terminal& term) {
  if (is_adapter(options.found)) return diff_adapter(options, expected, term);
  POSENC_TRY(found, named_model(options.found));
  POSENC_TRY(findings, differences(expected, found, options.at));
  const bool equal = only_notes(findings);
  if (options.json)
    write_out("{}\n", differences_to_json(expected, found, findings));
  else
    write_out("{}", page(expected, found, findings, term));
  return equal ? 0 : 1;
}

// What each engine makes of one file, or where two come apart in it.
Expected<int> diff_engines(const DiffOptions& options, const Model& model, const Terminal& term) {
  std::optional<Model> other;
  if (!options.found.empty()) {
    POSENC_TRY(found, named_model(options.found));
    other = std::move(found);
  }
  std::vector<EngineDifferences> all;
  std::vector<std::string> names = options.engines;
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const Engine& engine : engines())
      names.push_back(fmt::format("{}@{}", engine.name, engine.version));
  }
  for (const std::string& engine : names) {
    POSENC_TRY(one, other ? engine_differences(model, *other, engine, options.at)
                          : engine_differences(model, engine, options.at));
    all.push_back(std::move(one));
  }
  const bool equal = std::ranges::all_of(
      all, [](const EngineDifferences& one) { return only_notes(one.findings); });
  if (options.json) {
    std::string each;
    std::vector<Finding> findings;
    for (const EngineDifferences& one : all) {
      each += (each.empty() ? "" : ",") + to_json(one);
      findings.insert(findings.end(), one.findings.begin(), one.findings.end());
    }
    const std::string beside = other ? ",\"found\":" + json_string(other->name) : "";
    write_out("{{\"equal\":{},\"expected\":{}{},\"engines\":[{}],\"findings\":{}}}\n", equal,
              json_string(model.name), beside, each, to_json(findings));
  } else if (other) {
    write_out("{}  {}\n\n{}", term.bold(model.name), term.dim("beside " + other->name),
              engines_page(all, term));
  } else {
    write_out("{}  {}\n\n{}", term.bold(model.name),
              term.dim(cut(about(model),
                           page_width() - 12 - std::min<std::size_t>(columns(model.name), 40))),
              engines_page(all, term));
  }
  return equal ? 0 : 1;
}

// What an engine's log says that it was told.
Expected<int> diff_log(const DiffOptions& options, const Model& model, const Terminal& term) {
  POSENC_TRY(log, named_text(options.log, largest_log));
  POSENC_TRY(findings, log_differences(model, log, options.at));
  const bool equal = only_notes(findings);
  if (options.json)
    write_out("{{\"equal\":{},\"expected\":{},\"log\":{},\"findings\":{}}}\n", equal,
              json_string(model.name), json_string(options.log), to_json(findings));
  else
    write_out("{}  {}\n\n{}", term.bold(model.name), term.dim("beside " + options.log),
              findings_page(findings, term, "The engine was told what the file says."));
  return equal ? 0 : 1;
}

// Whether the line changes the rotation, and nothing is wrong with that.
bool asks_for_more(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& one) {
    return one.code == "rope_scaling" || one.code == "rope_factors";
  });
}

// What an engine's command line makes of the model.
Expected<int> diff_command(const DiffOptions& options, const Model& model, const Terminal& term) {
  POSENC_TRY(text, command_text(options.command));
  POSENC_TRY(findings, command_differences(model, text, options.at));
  const bool equal = only_notes(findings);
  if (options.json)
    write_out("{{\"equal\":{},\"expected\":{},\"command\":{},\"findings\":{}}}\n", equal,
              json_string(model.name), json_string(text), to_json(findings));
  else
    write_out("{}  {}\n\n{}", term.bold(model.name), term.dim("as the command line starts it"),
              findings_page(findings, term,
                            asks_for_more(findings) ? "The engine runs what the line asks for."
                                                    : "The engine runs what the file says."));
  return equal ? 0 : 1;
}

// Where one of the two is a position.json: what some program says it computes.
Expected<int> diff_positions(const DiffOptions& options, const Terminal& term) {
  POSENC_TRY(expected, position_of_any(options.expected, options.at));
  POSENC_TRY(found, position_of_any(options.found, options.at));
  POSENC_TRY(findings, differences(expected, found, options.at));
  const bool equal = only_notes(findings);
  if (options.json)
    write_out("{{\"equal\":{},\"expected\":{},\"found\":{},\"findings\":{}}}\n", equal,
              json_string(expected.model), json_string(found.model), to_json(findings));
  else
    write_out("{}{}\n{}{}\n\n{}", term.dim(padded("expected", 10)), term.bold(expected.model),
              term.dim(padded("found", 10)), term.bold(found.model),
              findings_page(findings, term, "Both treat position alike."));
  return equal ? 0 : 1;
}

Expected<bool> either_is_position(const DiffOptions& options) {
  for (const std::string& name : {options.expected, options.found}) {
    POSENC_TRY(position, named_position(name));
    if (position) return true;
  }
  return false;
}

Run define_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  constexpr const char* kinds =
      "a config.json, params.json or .gguf file, - for standard input, a folder, or a bundled name";
  app.add_option("EXPECTED", options->expected, fmt::format("The model as it should be: {}", kinds))
      ->type_name("MODEL")
      ->required();
  app.add_option("FOUND", options->found,
                 "What became of it, of the same kinds, the folder of an adapter (PEFT), or a "
                 "position.json (spec/position.md)")
      ->type_name("MODEL");
  app.add_option("--engines,--engine", options->engines,
                 "What these engines make of EXPECTED, or of FOUND beside it "
                 "(vllm,llama.cpp,transformers@4), or all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("ENGINES");
  app.add_option("--log", options->log,
                 "Instead of FOUND: what an engine or a converter printed (llama.cpp, vLLM, "
                 "transformers), or -")
      ->type_name("FILE");
  app.add_option("--command", options->command,
                 "Instead of FOUND: a command line that starts an engine, or a file of it")
      ->type_name("TEXT");
  app.add_option("--at,--length", options->at,
                 "Compare for positions 0 to LENGTH-1 (131072, 128k); default: the longer context")
      ->transform(token_count())
      ->default_str("");
  app.add_flag("--json", options->json)->description("The findings as JSON (docs/doctor.md)");
  app.footer(
      "For a model before and after conversion, a target and its draft, an adapter and its base. "
      "What is compared\n"
      "is what the layers compute, not how a file spells it. Exit code 1: something differs that "
      "changes positions.\n\n"
      "Examples:\n"
      "  posenc diff ./llama-3.1-8b llama-3.1-8b-Q4_K_M.gguf\n"
      "  posenc diff target/config.json draft/config.json\n"
      "  posenc diff qwen3-8b ./lora-folder\n"
      "  posenc diff ./my-model engine.position.json\n"
      "  posenc diff config.json --engines all --at 32k\n"
      "  posenc diff target/config.json draft/config.json --engines vllm\n"
      "  posenc diff config.json --log server.log\n"
      "  posenc diff config.json --command 'vllm serve M --hf-overrides …'\n"
      "  posenc diff qwen2.5-7b-yarn4 ./my-checkpoint --at 128k --json | jq '.findings[].code'");
  return [options, &app]() -> Expected<int> {
    const bool files = !options->found.empty() || !options->engines.empty();
    const int kinds_given =
        int{files} + int{!options->log.empty()} + int{!options->command.empty()};
    if (kinds_given != 1)
      return fail("diff", "takes a second model, --engines or both, or --log, or --command",
                  kinds_given > 1 ? "several" : "none of them",
                  "posenc diff A B, or posenc diff A --engines all");
    const Terminal term = terminal(no_color(app));
    POSENC_TRY(positions, either_is_position(*options));
    if (positions) {
      if (options->found.empty() || !options->engines.empty())
        return fail("diff", "takes a model beside a position.json", "none",
                    "posenc diff MODEL FILE.position.json");
      return diff_positions(*options, term);
    }
    POSENC_TRY(expected, named_model(options->expected));
    if (!options->log.empty()) return diff_log(*options, expected, term);
    if (!options->command.empty()) return diff_command(*options, expected, term);
    return options->engines.empty() ? diff_files(*options, expected, term)
                                    : diff_engines(*options, expected, term);
  };
}

}  // namespace

extern const Command diff_command{
    "diff", "where two models, or a model's engines, treat position differently", define_diff};

}  // namespace posenc::cli
