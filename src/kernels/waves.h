// Where the sine and the cosine of a pair of waves go, and waves of several axes as pieces of one
// axis each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/plan.h"

namespace posenc::detail {

struct WaveChannels {
  std::int64_t sine, cosine;  // from the width on: the pair has none
};
WaveChannels channels(const Waves& waves, std::int64_t pair);

// Neighbouring channels whose waves read one axis.
struct WavePiece {
  Waves waves;  // of one axis and one block
  std::int64_t first_channel = 0, axis = 0;
};

// The pieces of all channels, none where the waves are one. Absent: a block has a pair of several
// axes, or of others than its neighbours.
std::optional<std::vector<WavePiece>> pieces_of(const Waves& waves);

}  // namespace posenc::detail
