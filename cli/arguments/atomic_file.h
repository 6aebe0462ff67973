// Files that come out whole or not at all.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "posenc/error.h"

namespace posenc::cli {

// The parts one after the other, written beside `path` and renamed when whole. A link is followed.
// Errors: the target is a folder, a pipe or a device; what the system says.
Expected<void> write_whole(const std::string& path, std::initializer_list<std::string_view> parts);

}  // namespace posenc::cli
