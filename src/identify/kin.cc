// A table laid out for one pairing and applied with the other turns the two channels of a pair by
// different angles:
//   u_a = x_a cos α − x_b sin α,  u_b = x_b cos β + x_a sin β.
// Two heads or more give α and β, a channel at a time. A rotation by the head's index is one of
// heads in place of tokens.
#include "src/identify/kin.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/identify/frequency_fit.h"

namespace posenc::detail {
namespace {

// Heads and tokens exchanged.
Dump transposed(const Dump& dump) {
  Dump out{.heads = dump.tokens, .tokens = dump.heads, .dim = dump.dim, .noise = dump.noise};
  for (std::int64_t h = 0; h < out.heads; ++h)
    for (std::int64_t t = 0; t < out.tokens; ++t)
      for (std::int64_t c = 0; c < out.dim; ++c) {
        out.before.push_back(dump.was(t, h, c));
        out.after.push_back(dump.is(t, h, c));
      }
  out.positions.emplace_back();
  for (std::int64_t t = 0; t < out.tokens; ++t) out.positions.front().push_back(t);
  return out;
}

std::optional<Finding> by_head(const Dump& dump) {
  if (dump.heads < 3) return {};
  const Dump turned = transposed(dump);
  const std::vector<std::int64_t> changed = changed_channels(turned);
  std::vector<ChannelPair> pairs = find_pairs(turned, changed);
  std::erase_if(pairs, [](const ChannelPair& pair) { return pair.unexplained > partners; });
  if (!explained(turned, changed, pairs).rotates()) return {};
  return Finding{.code = "head_index",
                 .expected = "the token's position",
                 .found = "the head's index",
                 .message = "a vector is rotated by the index of its head and not by its position",
                 .cure =
                     "take [head][seq][dim] where the code has [seq][head][dim], or the other "
                     "way round"};
}

// How fast one channel turns, were it the lower or the upper one of a pair with `other`; nothing
// where it does not turn.
std::optional<AngleLine> channel_line(const Dump& dump, std::int64_t channel, std::int64_t other) {
  Turning turning;
  turning.spread = 2 * dump.noise / std::sqrt(static_cast<double>(dump.heads));
  double amplitude = 0;
  for (std::int64_t t = 0; t < dump.tokens; ++t) {
    double xx = 0, xy = 0, yy = 0, xu = 0, yu = 0;
    for (std::int64_t h = 0; h < dump.heads; ++h) {
      const double x = dump.was(h, t, channel), y = dump.was(h, t, other),
                   u = dump.is(h, t, channel);
      xx += x * x, xy += x * y, yy += y * y, xu += x * u, yu += y * u;
    }
    const double determinant = xx * yy - xy * xy;
    if (determinant < 1e-9 * (xx + yy) * (xx + yy)) return {};
    const double along = (xu * yy - yu * xy) / determinant,
                 across = (yu * xx - xu * xy) / determinant;
    turning.angle.push_back(channel < other ? std::atan2(-across, along)
                                            : std::atan2(across, along));
    amplitude += std::hypot(along, across) / static_cast<double>(dump.tokens);
  }
  const auto line = fit_line(dump.positions.front(), turning);
  if (!line) return {};
  double sum = 0;
  for (std::int64_t t = 0; t < dump.tokens; ++t) {
    const auto i = static_cast<std::size_t>(t);
    const double angle =
        line->frequency * static_cast<double>(dump.positions.front()[i]) + line->at_zero;
    sum += std::pow(std::remainder(turning.angle[i] - angle, 6.283185307179586), 2);
  }
  constexpr double straight = 0.1;  // radians; angles of what does not turn are 1.8 off
  if (std::sqrt(sum / static_cast<double>(dump.tokens)) > straight || amplitude < 0.1) return {};
  return line;
}

// [channel], of channels that turn with partners `stride` away.
using ChannelLines = std::vector<std::optional<AngleLine>>;

ChannelLines lines_of(const Dump& dump, std::int64_t rotary, bool halves) {
  ChannelLines lines;
  for (std::int64_t c = 0; c < rotary; ++c) {
    const std::int64_t other = halves ? (c + rotary / 2) % rotary : c ^ 1;
    lines.push_back(channel_line(dump, c, other));
  }
  return lines;
}

bool equal(const std::optional<AngleLine>& a, const std::optional<AngleLine>& b) {
  return a && b &&
         std::abs(a->frequency - b->frequency) <=
             20 * (a->resolution + b->resolution) + 1e-4 * std::abs(a->frequency);
}

Finding table_of_the_other(bool halves, std::optional<double> base) {
  const std::string for_whom = halves ? "interleaved" : "halves",
                    by_whom = halves ? "halves" : "interleaved";
  return {.code = halves ? "interleaved_table" : "halves_table",
          .expected = by_whom,
          .found = for_whom,
          .message = "cosines and sines are laid out for " + for_whom + ", and pairs are taken " +
                     (halves ? "in halves" : "as neighbours") +
                     ": the two channels of a pair turn by different angles" +
                     (base ? "; base " + number_text(*base) : ""),
          .cure = halves ? "build the table as cat(angles, angles), or rotate neighbours"
                         : "build the table as repeat_interleave(angles, 2), or rotate halves"};
}

std::optional<Finding> by_table(const Dump& dump, std::int64_t rotary, bool halves) {
  const ChannelLines lines = lines_of(dump, rotary, halves);
  const auto turning = std::ranges::count_if(lines, [](const auto& line) { return !!line; });
  if (10 * turning < 9 * rotary) return {};
  // The other layout's columns that are one pair's.
  std::int64_t same = 0;
  std::vector<Measured> measured;
  for (std::int64_t r = 0; r < rotary / 2; ++r) {
    const auto a = static_cast<std::size_t>(halves ? 2 * r : r),
               b = static_cast<std::size_t>(halves ? 2 * r + 1 : r + rotary / 2);
    if (!equal(lines[a], lines[b])) continue;
    ++same;
    if (lines[a]->frequency > 4 * lines[a]->resolution)
      measured.push_back({r, lines[a]->frequency, lines[a]->resolution});
  }
  if (10 * same < 9 * (rotary / 2)) return {};
  const auto base = measured.size() < 2 ? std::nullopt : base_of(measured, rotary, 1);
  return table_of_the_other(halves, base);
}

// What the slip leaves unexplained of what changed, were the base this one.
double left_by(const Dump& dump, std::int64_t rotary, bool halves, double base) {
  double left = 0, all = 0;
  for (std::int64_t h = 0; h < dump.heads; ++h)
    for (std::int64_t t = 0; t < dump.tokens; ++t)
      for (std::int64_t c = 0; c < rotary; ++c) {
        const bool lower = halves ? c < rotary / 2 : c % 2 == 0;
        const std::int64_t other = halves ? (c + rotary / 2) % rotary : c ^ 1,
                           column = halves ? c / 2 : c % (rotary / 2);
        const double angle =
            static_cast<double>(dump.positions.front()[static_cast<std::size_t>(t)]) *
            std::pow(base, -2 * static_cast<double>(column) / static_cast<double>(rotary));
        const double sine = std::sin(angle) * (lower ? -1 : 1);
        const double made = dump.was(h, t, c) * std::cos(angle) + dump.was(h, t, other) * sine;
        left += std::pow(dump.is(h, t, c) - made, 2);
        all += std::pow(dump.is(h, t, c) - dump.was(h, t, c), 2);
      }
  return all > 0 ? left / all : 1;
}

// A single head does not give the two angles of a pair; bases that models have are tried instead.
std::optional<Finding> by_table_of_a_base(const Dump& dump, std::int64_t rotary, bool halves) {
  constexpr double bases[] = {1e4, 1e5, 1.5e5, 5e5, 1e6, 5e6, 1e7};
  constexpr double explains = 1e-3;
  for (const double base : bases)
    if (left_by(dump, rotary, halves, base) < explains) return table_of_the_other(halves, base);
  return {};
}

}  // namespace

std::optional<Finding> kin_of(const Dump& dump, const std::vector<std::int64_t>& changed) {
  if (auto finding = by_head(dump)) return finding;
  if (dump.positions.size() != 1) return {};
  const std::int64_t seen = changed.back() + 1;
  for (const std::int64_t rotary : {seen + seen % 2, dump.dim, dump.dim / 2}) {
    if (rotary < 4 || rotary > dump.dim || rotary % 2 != 0) continue;
    for (const bool halves : {true, false})
      if (auto finding = dump.heads > 1 ? by_table(dump, rotary, halves)
                                        : by_table_of_a_base(dump, rotary, halves))
        return finding;
  }
  return {};
}

}  // namespace posenc::detail
