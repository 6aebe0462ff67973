// Which axis of the positions each pair depends on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/identify/dump.h"

namespace posenc::detail {

struct AxisLine : AngleLine {
  std::int64_t axis = 0;  // -1: several explain the angles as well
};
// The line of the axis that explains a pair's angles best. Nothing where no two tokens are
// neighbours on any axis.
std::optional<AxisLine> fit_axes(const std::vector<std::vector<std::int64_t>>& positions,
                                 const Turning& turning);

// How the axes share the pairs out, of pairs whose axis is known.
void share_axes(std::int64_t axes, Identified& out);
// "sections: 16, 24, 24 pairs"
std::string axes_text(const Identified& found);

}  // namespace posenc::detail
