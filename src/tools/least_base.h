// The least base of RoPE for a length (2405.14591).
#pragma once

#include <cstdint>
#include <optional>

namespace posenc::detail {

struct RotatedHead {
  std::int64_t pairs = 0;     // of the geometric series: frequency r is base^(−r/pairs)
  std::int64_t rotating = 0;  // the first ones; the others stand still
  std::int64_t channels = 0;  // of the head; those beyond 2·pairs stand still
};

// The least base, on a grid of 16 to the octave from 2 on, for which Σ cos(m·f_r) over half the
// head's channels, still ones included, is not negative for every distance m below `length`. A key
// equal to the query then has on average no lower a logit than a random one. Nothing: every base
// will do, none on the grid does, or the work is beyond 2^27 cosines a base.
std::optional<double> least_base(const RotatedHead& head, std::int64_t length);

}  // namespace posenc::detail
