// What was identified beside the plan of a group of layers.
#pragma once

#include <cstdint>
#include <vector>

#include "posenc/identify.h"
#include "posenc/model.h"

namespace posenc::detail {

// The layer of a text, of a decoder, of an encoder, or of pictures, where the model has no other;
// null: no such layer. Below 0: the first.
const LayerGroup* group_of(const Model& model, std::int64_t layer);

// `rotate` is the plan's, of channels as the dump has them.
std::vector<Finding> beside_plan(const Identified& found, const Model& model,
                                 const LayerGroup& group, const Rotate& rotate, bool indexer);

}  // namespace posenc::detail
