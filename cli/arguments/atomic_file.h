// Files that come out whole or not at all.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "posenc/error.h"

namespace posenc::cli {

// The parts one after the other, written beside `path` and renamed when whole. Links are followed,
// also one that leads to no file yet. Mode, owner and group are those of the file that was there;
// its other names (hard links) keep what it held. A signal that ends the program removes the
// unfinished file, but for SIGKILL, which leaves .posenc-PID-N. Errors: the target is a folder, a
// pipe or a device, or may not be written; its folder may not be; what the system says.
Expected<void> write_whole(const std::string& path, std::initializer_list<std::string_view> parts);

}  // namespace posenc::cli
