// Settings of programs that are started by a form or a file, as the command line that says the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace posenc::detail {

struct ServingSettings {
  std::string_view program;  // "LM Studio"
  std::string line;          // "lms load --context-length 400000 --rope-freq-scale 0.65"
};

// LM Studio's load settings (its JSON, or its form as people write it down), koboldcpp's .kcpps,
// tabbyAPI's config.yml, llama-server's presets, LocalAI's YAML, genai_config.json, a service of
// docker-compose or Kubernetes. Nothing: none of these.
std::optional<ServingSettings> serving_settings(std::string_view text);

}  // namespace posenc::detail
