// timm's own description of a model: the name of an architecture, and what its weights were made
// for.
#pragma once

#include <optional>

#include "src/text/json.h"

namespace posenc::detail {

// Whether a file is such a description.
bool is_of_timm(const Json& whole);

// The same in transformers' words, for a ViT or DeiT with a learned table. Nothing for any other
// architecture, and for one that is built otherwise than its name says.
std::optional<Json> from_timm(const Json& whole);

}  // namespace posenc::detail
