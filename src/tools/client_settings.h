// Settings of clients, which say how long they believe a server's context to be.
#pragma once

#include <optional>
#include <string_view>

#include "posenc/tools.h"

namespace posenc::detail {

// Lengths that a coding agent or a router keeps books by, and no server hears of; nothing: these
// are no such settings.
std::optional<Finding> client_settings(std::string_view text);

}  // namespace posenc::detail
