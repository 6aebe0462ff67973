// Command lines of programs that have no profile: what is known of position in them all the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "posenc/tools.h"

namespace posenc::detail {

struct ForeignLine {
  std::vector<Finding> findings = {};
  bool judged = false;  // a number of the line was compared, and may be right
};
// A length beyond what the model is made for, frames beyond those of its training, a scaling that
// the program is known not to read. Without a model (null) what the line alone says.
ForeignLine foreign_line(std::string_view line, const Model* model);

// A client that gives Ollama the context under another name than num_ctx: options that Ollama does
// not know do nothing, without a word.
std::optional<Finding> unknown_option_of_ollama(std::string_view code);

// A video of more frames than a diffusion transformer was trained on; 0: nobody says how many.
std::optional<Finding> frames_beyond(const Model& model, std::int64_t frames);

// What is known of a program that is named alone, by its word in programs.cc, for texts of `length`
// tokens; 0: nobody says.
std::vector<Finding> known_of_program(std::string_view word, const Model& model,
                                      std::int64_t length);

}  // namespace posenc::detail
