// The model that a command line names.
#pragma once

#include <cstddef>
#include <string>

#include "posenc/model.h"

namespace posenc::cli {

// A file, a folder or a bundled name, as read_model() takes it; "-" (or /dev/stdin, or a shell's
// <(...)) is a config.json, params.json or GGUF that comes through a pipe. Errors: those of
// read_model(), more than 64 MiB.
Expected<Model> named_model(const std::string& name);

// All of a text file, or of a pipe ("-"). Errors: it cannot be read, more than `most` bytes;
// nothing beyond is read.
Expected<std::string> named_text(const std::string& name, std::size_t most);

}  // namespace posenc::cli
