// Configurations of programs that have names of their own for what Hugging Face's files say:
// OpenAI's Whisper (dims of its checkpoint) and its open models, nanoGPT, DeepSeek's own
// inference, LitGPT and NeMo, whose files are YAML.
#pragma once

#include <optional>
#include <string_view>

#include "src/text/json.h"

namespace posenc::detail {

// The same in Hugging Face's words; nothing: it is none of these.
std::optional<Json> from_other_names(const Json& whole);

// Whether it is the configuration of DeepSeek's own inference code, which leaves to its class what
// the scaling is.
bool is_of_deepseek(const Json& whole);

// Whether it is the configuration of OpenAI's own inference code.
bool is_of_openai(const Json& whole);

// Whether it is one of NeMo, which names no family.
bool is_of_nemo(const Json& whole);

// LitGPT's and NeMo's model_config.yaml, as JSON of the same keys; nothing: it is another text.
std::optional<Json> settings_in_yaml(std::string_view text);

}  // namespace posenc::detail
