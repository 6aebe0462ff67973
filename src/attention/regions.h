// A rotation's regions, one at a time: its rotation, and where tokens are taken to stand.
#pragma once

#include <cstdint>
#include <vector>

#include "posenc/plan.h"
#include "posenc/positions.h"

namespace posenc::detail {

// The rotation within a region, which depends on positions alone.
inline Rotate rotation_of(const Rotate& rotate, const Regions::Region& region) {
  Rotate plain = rotate;
  plain.kind = Plain{};
  for (double& frequency : plain.frequencies.radians) frequency *= region.frequency_scale;
  return plain;
}

// Of one axis.
inline Positions mapped(const Positions& positions, const PositionMap& map) {
  std::vector<std::int64_t> ids;
  for (std::int64_t b = 0; b < positions.batch(); ++b)
    for (std::int64_t t = 0; t < positions.size(); ++t) ids.push_back(map.at(positions.at(t, b)));
  return *Positions::signed_ids(ids, 1, positions.batch());
}

}  // namespace posenc::detail
