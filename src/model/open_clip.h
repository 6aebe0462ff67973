// open_clip's own description of a model, which has towers of the layers of CLIP.
#pragma once

#include <optional>

#include "src/text/json.h"

namespace posenc::detail {

// The same in transformers' words. Nothing where it is no such file, or a tower is not CLIP's: a
// model of timm or transformers, a ResNet, sinusoids.
std::optional<Json> from_open_clip(const Json& whole);

}  // namespace posenc::detail
