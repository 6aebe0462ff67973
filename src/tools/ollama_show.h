// What Ollama's /api/show answers: the keys of the model's GGUF, and its Modelfile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "posenc/model.h"

namespace posenc::detail {

struct OllamaShow {
  Model model = {};
  std::string modelfile = {};  // "" where the answer has none
};

// Nothing: the text is no such answer, or its keys are no model's.
std::optional<OllamaShow> ollama_show(std::string_view text, const std::string& name);

}  // namespace posenc::detail
