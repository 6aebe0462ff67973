// Diffusion transformers of one file, as ComfyUI and others keep them: weights and no
// configuration.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "posenc/files.h"
#include "posenc/model.h"

namespace posenc::detail {

// The model that the names and shapes of its tensors tell: the class of diffusers and its sizes,
// the rest by the class's defaults. Nothing where no class is known by them. Errors: a class that
// is known and not covered, sizes that no class has.
std::optional<Expected<Model>> read_checkpoint(std::span<const StoredTensor> tensors,
                                               std::string_view name, FileFormat format);

}  // namespace posenc::detail
