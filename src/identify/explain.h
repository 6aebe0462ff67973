// What may have made the frequencies of a dump's pairs: base, scaling, and the arithmetic of the
// angles.
#pragma once

#include <cstdint>
#include <vector>

#include "src/identify/dump.h"

namespace posenc::detail {

// What was measured of a dump beside what Identified keeps.
struct Measurement {
  const Dump& dump;
  bool repeated = false;
  std::int64_t seen_dim = 0;                     // channels from first_dim to the last that changes
  double spread = 0;                             // of an angle, by noise
  std::vector<std::vector<double>> angles = {};  // [pair of Identified::pairs][token]
};

// Of the pairs' channels: which pair of the slice they are.
std::int64_t pair_index(const Identified& found, const IdentifiedPair& pair);

// Fills frequencies, runner_up, angles, and says what the dump leaves open; rotary_dim grows where
// slower channels follow.
void explain(const Measurement& measured, Identified& out);

}  // namespace posenc::detail
