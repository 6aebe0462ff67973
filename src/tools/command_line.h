// An engine's command line as text: its words as a shell would hand them on, and the flags among
// them that position depends on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tools.h"

namespace posenc::detail {

struct CommandFlag {
  std::string name;   // "--rope-scale", whatever alias was written
  std::string value;  // never empty; "true" of a flag that takes none
};

struct CommandLine {
  std::string engine;   // as profiles name it: "llama.cpp", "vllm", "megatron-core"
  std::string program;  // that the line starts: "llama-server", "lms"; "" where flags alone tell
  std::string version = {};  // of the engine, where the tag of an image says it: "0.11.0"
  std::vector<CommandFlag> flags = {};
  std::vector<std::string> foreign_lengths = {};  // flags by which others are told the length

  // The last one of a name, which is the one that counts; null if there is none.
  const CommandFlag* find(std::string_view name) const;
};

// The words of a text as a shell has them; the end of a command is the word "\n". Errors: more than
// 1 MiB, a zero byte, a quote that does not end.
Expected<std::vector<std::string>> shell_words(std::string_view text);

// The command of a text: `llama-server`, `vllm serve`, `python -m sglang.launch_server` with
// whatever stands before (docker run, variables), or flags alone. Flags that have nothing to do
// with position are passed over. Errors: no engine that is known, a quote that does not end, a flag
// without its value, a flag that is nearly one of those.
Expected<CommandLine> read_command_line(std::string_view text);

// Flags of llama.cpp in a cure as the variables of its image: LLAMA_ARG_CTX_SIZE=8192 for -c 8192.
std::string in_variables_of_llama_cpp(std::string cure);

// Whether it starts a model that drafts for the main one, with a file of its own.
bool names_a_draft(const CommandLine& line);

// A model as llama.cpp's loader has it, with the flags and overridden keys above that.
Expected<void> apply_llama_flags(Model& model, const CommandLine& line, std::int64_t length,
                                 std::vector<Finding>& findings);

// Megatron's rotation, which comes from its arguments alone: of the file nothing counts but sizes.
Expected<void> apply_megatron_flags(Model& model, const CommandLine& line,
                                    std::vector<Finding>& findings);

// How many tokens one request may have where the line asks for `asked` (0: not said), and what is
// to be said of that: slots, self-extend, caps, drafts, more than the model is made for. `version`
// of the engine ("": nobody tells it).
Expected<std::int64_t> tokens_of_a_request(const Model& file, const Model& told,
                                           const CommandLine& line, std::string_view version,
                                           std::int64_t asked, std::vector<Finding>& findings);

// Of a text of `wanted` tokens, which the `served` tokens of the line do not hold.
Finding served_shorter(const Model& model, std::string_view command, std::int64_t served,
                       std::int64_t wanted);

// A server or a chat of llama.cpp that has so few tokens for prompt and answer that it forgets.
std::optional<Finding> few_tokens(const CommandLine& line, double tokens);

// --- What readers of any engine's flags need -----------------------------------------------------

Rope* mutable_rope(LayerGroup& group);  // null: none of its schemes rotates
Expected<double> number_of_flag(const CommandFlag& flag);
Finding line_finding(std::string code, Severity severity, std::string_view found,
                     std::string message, std::string cure);

// The text without these characters at its two ends.
std::string_view without(std::string_view text, std::string_view characters);

}  // namespace posenc::detail
