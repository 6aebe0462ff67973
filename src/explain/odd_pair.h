// One pair of a ladder of frequencies that is not where it belongs: what may have made it so.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace posenc::detail {

struct OddPair {
  std::optional<std::int64_t> of;  // the pair whose frequency it has
  bool slower = false;             // than it should be, and as no other pair: RIFLEx makes such
  std::string message = {}, cure = {};
};

// `meant` [pair] are the frequencies of all pairs, `found` is what this one has, known to `blur`.
OddPair odd_pair(std::int64_t pair, double found, double blur, std::span<const double> meant);

}  // namespace posenc::detail
