// A position.json on the command line (posenc/position.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "posenc/position.h"

namespace posenc::cli {

// Nothing: the name is none of a position.json (a model's, a folder's, a pipe's).
Expected<std::optional<PositionFile>> named_position(const std::string& name);

// Of a position.json as it is, of a model for so many tokens (0: as constructed).
Expected<PositionFile> position_of_any(const std::string& name, std::int64_t length);

}  // namespace posenc::cli
