// RIFLEx slows a pair, and no scaling makes one faster or gives it another one's frequency.
#include "src/explain/odd_pair.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "src/explain/text.h"

namespace posenc::detail {

OddPair odd_pair(std::int64_t pair, double found, double blur, std::span<const double> meant) {
  OddPair out;
  std::int64_t alike = 0;
  for (std::int64_t r = 0; r < std::ssize(meant); ++r) {
    const double f = meant[static_cast<std::size_t>(r)];
    if (r == pair || std::abs(f - found) > 4 * blur + 1e-5 * f) continue;
    ++alike;
    out.of = r;
  }
  if (alike != 1) out.of.reset();  // slow pairs look alike where little is seen of them
  const double own = meant[static_cast<std::size_t>(pair)];
  out.slower = !out.of && found < own;
  const std::string which = "pair " + std::to_string(pair);
  out.cure = "compute " + which + "'s frequency anew: " + shown(own, 5) + " radians a position";
  if (out.of) {
    const std::string other = "pair " + std::to_string(*out.of);
    out.message =
        which + " rotates by the frequency of " + other + ", all others by their own: " +
        (std::abs(*out.of - pair) == 1 ? "an index that is off by one" : "an index that slipped");
  } else if (found == 0) {
    out.message = which + " stands still, and all others rotate by their own frequencies";
    out.slower = false;  // no scaling slows one down to nothing
  } else if (out.slower) {
    out.message = which +
                  " rotates slower than the base gives it, all others by their own frequencies: "
                  "RIFLEx slows one pair of the frames so that a longer video does not repeat";
    out.cure = "right where the engine was asked for it; else " + out.cure;
  } else {
    out.message = which +
                  " rotates faster than the base gives it, all others by their own frequencies: no "
                  "scaling makes one pair faster";
  }
  return out;
}

}  // namespace posenc::detail
