// Whose command line it is: the program that a line starts, among launchers, variables and values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace posenc::detail {

struct Program {
  std::string_view word;         // as it is typed, without its path: "llama-server"
  std::string_view engine = {};  // whose profile reads the model; "": posenc has none
  std::string_view flags = {};   // whose flags the line has, where they are not the engine's
  std::string_view title = {};   // of a program without a profile: what people call it
  std::string_view advice = {};  // and what can be told of it all the same
  std::string_view beside = {};  // counts only with this flag: others have a program of its name
  std::string_view engine_flag = {};  // names the engine that it hands its flags on to
  bool trains = false;                // its line holds the settings of a training
  bool is_package = false;  // counts before a subcommand or a flag: prose names it as well

  std::string_view owner() const { return flags.empty() ? engine : flags; }
};

struct StartedProgram {
  const Program* program = nullptr;
  std::size_t behind = 0;  // the first word behind its name
};

// The word of a program that posenc has no profile of, of its name with - or _: "mlc_llm" of
// "mlc-llm"; "": it is none of them.
std::string_view program_without_profile(std::string_view name);

// Whether such a program trains models.
bool is_trainer(std::string_view word);

// The engine within a program, by its word: "llama.cpp" of "llama-server"; "": no profile.
std::string_view engine_within(std::string_view word);

// Nothing: no word names one. A value (`--infer_backend vllm`) is none.
std::optional<StartedProgram> started_program(std::span<const std::string> words);

}  // namespace posenc::detail
