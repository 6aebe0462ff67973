// Mistral's params.json (mistral-inference, mistral-common, vLLM's "mistral" format).
#pragma once

#include <string_view>

#include "src/model/families/reading.h"

namespace posenc::detail {

// By its content: the sizes in Mistral's words, and no model_type of Hugging Face.
bool is_params(const Json& json);

// The text of a config.json or a params.json.
Expected<Model> read_text_of_model(std::string_view text, std::string_view name);

Expected<Model> read_params_json(const Json& json, std::string_view name);

}  // namespace posenc::detail
