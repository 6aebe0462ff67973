// How to make the dumps that `posenc identify` reads, in the words of each engine.
#pragma once

#include <string>
#include <string_view>

#include "posenc/error.h"

namespace posenc::cli {

// Errors: an engine whose words are not known.
Expected<std::string_view> how_to_dump(const std::string& engine);

}  // namespace posenc::cli
