// The doctor: whatever a person has is taken as evidence, and answered by one list of findings with
// a verdict above them. The first model is what should run; everything else is a run of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tools.h"

namespace [[gnu::visibility("default")]] posenc {

enum class ExhibitKind {
  model,      // config.json, params.json, GGUF, a folder
  command,    // a line that starts an engine
  log,        // what an engine or a converter printed
  modelfile,  // Ollama's
  training,   // YAML, TOML or command line of a trainer
  inv_freq,   // frequencies as numbers in a text
  versions,   // of engines, as pip lists them; `text` is "vllm@0.19.1, transformers@5.3.0"
  symptom,    // what somebody saw, in words: "gibberish after 4k tokens in ollama"
  unusable,   // `as` says why, and what to give instead
};
constexpr std::string_view name(ExhibitKind kind) {
  constexpr std::string_view names[] = {"model",    "command",  "log",      "modelfile",
                                        "training", "inv_freq", "versions", "symptom",
                                        "unusable"};
  return names[static_cast<std::size_t>(kind)];
}

// One thing that a person has.
struct Exhibit {
  std::string name = {};  // as it was given
  ExhibitKind kind = ExhibitKind::unusable;
  std::string as = {};  // one line: how it is taken
  std::optional<Model> model = {};
  std::string text = {};  // set where it is no model
  bool used = true;       // false: `as` says why not
  std::string rest = {};  // what stands beside it in the same text, to be taken by itself
};
Exhibit model_exhibit(std::string name, Model model);
Exhibit unusable_exhibit(std::string name, const Error& error);
// Tells by its content what a text is: JSON or a GGUF of a model, a command line, a log, a
// Modelfile, a trainer's settings, numbers, versions, or a complaint in words.
Exhibit text_exhibit(std::string name, std::string text);
// What stands behind a path, a bundled name or a command line: one exhibit; of an adapter's folder,
// which has no configuration of its own, one for each file of its trainer's settings. What cannot
// be used says why.
std::vector<Exhibit> exhibits_of(const std::string& given);

// What is known besides the exhibits.
struct DoctorOptions {
  std::int64_t length = 0;  // tokens that it is to run for; 0: what the evidence says
  std::vector<std::string> engines =
      {};  // "vllm", "transformers@5.12": beside those of the evidence
};

// A finding, and what a person needs to know of it.
struct Diagnosed {
  Finding finding = {};
  std::string engine = {}, version = {};  // "" where none is concerned
  std::string where = {};                 // "config.json", "server.log:7", "command"
  std::string effect = {};                // "from position 192 on", "from the first token on"
  std::string sure = {};                  // "computed", "by the engine's profile", "likely"
};

// What the doctor says.
struct Diagnosis {
  std::vector<Exhibit> evidence = {};
  std::string verdict = {};              // one sentence
  std::vector<Diagnosed> findings = {};  // ordered by their effect within `length`
  std::int64_t length = 0;               // that it was judged for; 0: nobody says
  std::string next = {};                 // the command to run next
};
// {"evidence", "verdict", "findings": [{"code", "severity", "engine", "version", "where", "what",
// "effect", "cure", "sure", "finding"}], "next"} (docs/json.md).
std::string to_json(const Diagnosis& diagnosis);

// Errors: no evidence at all, no such engine, a negative length.
Expected<Diagnosis> diagnose(std::vector<Exhibit> evidence, const DoctorOptions& options = {});

// Frequencies as somebody printed them (numbers in a text, tensor([…]) around them). Each is known
// as far as its last digit. Errors: fewer than four numbers, more than 65,536.
Expected<std::vector<double>> read_printed_frequencies(std::string_view text,
                                                       std::vector<double>* resolution = nullptr);

}  // namespace posenc
