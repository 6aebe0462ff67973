// What a person types into a program that runs one of the engines: a Modelfile, settings, a few
// flags.
#pragma once

#include <optional>
#include <string_view>

#include "posenc/engines.h"

namespace posenc::detail {

// A program of people, and the engine within, whose profile reads the file.
struct TypedTarget {
  Engine program;
  std::string_view engine;  // "llama.cpp"
  // The words for a context of `tokens`, by a rope of its text layers.
  std::string (*spell)(const Rope& rope, std::int64_t tokens, std::vector<EngineNote>& notes);
};
std::span<const TypedTarget> typed_targets();
const TypedTarget* find_typed(std::string_view name);  // null: no such program

// Puts the program's words into a translation for its engine.
void type_in(const TypedTarget& target, const Model& model, Translation& out);

}  // namespace posenc::detail
