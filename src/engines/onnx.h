// ONNX as a target of translate(): its operators take tables, and no engine has to read a
// configuration.
#pragma once

#include "posenc/engines.h"

namespace posenc::detail {

// Fills in the target, its notes and its differences for `length` positions.
Expected<void> translate_to_onnx(const Model& model, Translation& out);

}  // namespace posenc::detail
