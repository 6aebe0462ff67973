// What a path leads to: a file, read by what is in it, or a folder with several that describe one
// model.
#pragma once

#include <string>

#include "posenc/model.h"

namespace posenc::detail {

// A config.json or params.json, whatever its name. Symbolic links are followed.
// Errors: none there, a link that leads nowhere or in a circle, a folder, a pipe, a device.
Expected<Model> read_file(const std::string& path);

// Errors: nothing there that describes a model; what describes it first cannot be read. Another
// file that cannot be read is the warning file_not_read.
Expected<Model> read_folder(const std::string& path);

}  // namespace posenc::detail
