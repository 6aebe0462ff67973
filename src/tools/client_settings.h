// Settings of clients, which say how long they believe a server's context to be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "posenc/tools.h"

namespace posenc::detail {

// Lengths that a coding agent or a router keeps books by, and no server hears of; nothing: these
// are no such settings.
std::optional<Finding> client_settings(std::string_view text);

// The Modelfile that asks for the same, where a client hands its length on to Ollama (Continue does,
// as num_ctx): of the first model of its settings that has one. Nothing: it names no such model.
std::optional<std::string> modelfile_of_client(std::string_view text);

}  // namespace posenc::detail
