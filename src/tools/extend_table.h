// Larger pictures for an encoder of pictures with a learned table.
#pragma once

#include <optional>

#include "posenc/model.h"
#include "posenc/pictures.h"

namespace posenc::detail {

// The grid that the table is stretched to, in the words of the tools that do it. Nothing: no table
// with a row for each patch of a square picture, or no picture of a patch at least.
std::optional<PicturePlan> extend_table(const Model& model, const PictureOptions& options);

}  // namespace posenc::detail
