// What each rotating pair does, with and without the scaling.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "posenc/explain.h"

namespace posenc::detail {

// The rotation as it would be without scaling and without frequency factors; nothing where the
// group has none to compare with.
std::optional<Rotate> unscaled_rotation(const LayerGroup& group);

std::vector<PairFact> pair_facts(const Rotate& rotate, const std::optional<Rotate>& unscaled,
                                 std::int64_t trained, std::int64_t asked);

std::vector<Band> scaling_bands(std::span<const PairFact> pairs);

}  // namespace posenc::detail
