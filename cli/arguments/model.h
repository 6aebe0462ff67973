// The model that a command line names.
#pragma once

#include <string>

#include "posenc/model.h"

namespace posenc::cli {

// A file, a folder or a bundled name, as read_model() takes it; "-" (or /dev/stdin, or a shell's <(...)) is a
// config.json, params.json or GGUF that comes through a pipe. Errors: those of read_model(), more than 64 MiB.
Expected<Model> named_model(const std::string& name);

}  // namespace posenc::cli
