// The line that a docker-compose.yml, a Dockerfile, a pod of Kubernetes or a llama-swap
// configuration starts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace posenc::detail {

// Variables, image and words of the first service that starts an engine which is known, as one
// command line. Nothing: the text is no such file, or none of its services is one.
std::optional<std::string> line_of_containers(std::string_view text);

}  // namespace posenc::detail
