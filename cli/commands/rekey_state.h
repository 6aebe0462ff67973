// A state file of llama.cpp whose tokens stand elsewhere.
#pragma once

#include <string>

#include "cli/arguments/source.h"
#include "posenc/error.h"

namespace posenc::cli {

// What a user asks for: texts of positions, "" for those of the file's first cache.
struct StateMove {
  std::string in, out, from, to;
};

// Whether a path is one. A file that is not there is none.
bool is_state_file(const std::string& path);

// Each cell at a position of `from` goes to that of `to` in its place: its keys in every layer, each
// by the layer's own rotation, and its position. Values, tokens and all else stay as they are.
// Errors: those of rekey(); a model whose keys may not be moved (reuse.h), states that are not
// keys, cells with three positions, cells that `from` does not name, types of keys that are none of
// f32, f16, bf16 and q8_0, caches that are not of the model's layers.
Expected<void> rekey_state(const StateMove& how, Source& source);

}  // namespace posenc::cli
