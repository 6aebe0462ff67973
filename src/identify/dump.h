// Dumped queries or keys as numbers, and which pairs of their channels rotate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/identify.h"
#include "src/core/kept_as.h"

namespace posenc::detail {

// [row][channel] of every head and token; a row of `before` beside each of `after`.
struct Dump {
  std::int64_t heads = 0, tokens = 0, dim = 0;
  std::vector<double> before = {}, after = {};  // [head][token][dim]
  // [axis][token], of repeated tokens from that of the first; what was taken off them on the first
  // axis.
  std::vector<std::vector<std::int64_t>> positions = {};
  std::int64_t origin = 0;
  std::vector<std::int64_t> zeros = {};  // tokens left out: nothing but zeros, as of padding
  double noise = 0;                      // rounding of a number of `after`, as a share of it

  double was(std::int64_t head, std::int64_t token, std::int64_t channel) const {
    return before[static_cast<std::size_t>((head * tokens + token) * dim + channel)];
  }
  double is(std::int64_t head, std::int64_t token, std::int64_t channel) const {
    return after[static_cast<std::size_t>((head * tokens + token) * dim + channel)];
  }
};

Expected<Dump> read_dump(const RotationDump& from);

// The narrowest type that holds all of them, and half of its last digit.
DType kept_type(const std::vector<double>& numbers);
double rounding(DType type);

// Channels that changed by less than so many times the noise count as unchanged.
inline constexpr double least_change = 4;

// Channels that position changed, ascending.
std::vector<std::int64_t> changed_channels(const Dump& dump);

struct ChannelPair {
  std::int64_t a = 0, b = 0;  // a < b
  double unexplained = 1;     // of what changed in them, after the best rotation: a share, 0 to 1
};

// Each channel with the partner that rotates with it, where there is one.
std::vector<ChannelPair> find_pairs(const Dump& dump, const std::vector<std::int64_t>& channels);

// How much of what changed in the channels the pairs have, what rotation leaves unexplained of
// that, and of all that changed.
struct Explained {
  double share = 0, within = 1, residual = 1;
  double chance =
      // with less left within, partners are none by chance: fewer vectors fit them more easily
      0.1;
  bool rotates() const { return share >= 0.9 && within < chance; }
};
Explained explained(const Dump& dump, const std::vector<std::int64_t>& channels,
                    const std::vector<ChannelPair>& pairs);

// The best partner leaves less than this of what changed unexplained: 0.01 or less where the noise
// is small. Wrong ones leave 0.18 and more, and are not the best.
inline constexpr double partners = 0.25;

// Σ |after − before|² of a channel.
double change(const Dump& dump, std::int64_t channel);

// What rotation leaves of the pairs' numbers, as a share of them: rounding, and whatever else an
// engine adds to it.
double noise_of(const Dump& dump, const std::vector<ChannelPair>& pairs);

// What the best rotation of two channels leaves unexplained; 1 where nothing changed.
double unexplained(const Dump& dump, std::int64_t a, std::int64_t b);

// A pair's rotation at each token: amplitude · e^(i·angle).
struct Turning {
  std::vector<double> angle = {};  // [token], in (−π, π]
  double amplitude = 1;
  double spread = 0;  // of an angle, by noise: radians
};
Turning turning(const Dump& dump, const ChannelPair& pair);

// A line through angles that are known up to full turns.
struct AngleLine {
  double frequency = 0, at_zero = 0;  // angle = frequency · position + at_zero
  double resolution = 0;              // of the frequency
};
// Nothing where no two tokens are neighbours: the frequency is then one of many.
std::optional<AngleLine> fit_line(const std::vector<std::int64_t>& positions,
                                  const Turning& turning);

}  // namespace posenc::detail
