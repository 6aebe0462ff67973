#include "src/identify/axes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/identify/explain.h"

namespace posenc::detail {
namespace {

double off_line(const std::vector<std::int64_t>& positions, const Turning& turning,
                const AngleLine& line) {
  double sum = 0;
  for (std::size_t t = 0; t < positions.size(); ++t) {
    const double angle = line.frequency * static_cast<double>(positions[t]) + line.at_zero;
    const double off = std::remainder(turning.angle[t] - angle, 6.283185307179586);
    sum += off * off;
  }
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(positions.size(), 1)));
}

// Each axis in one stretch of pairs, or another one at every step.
AxisLayout layout_of(const std::vector<std::int64_t>& axis_of_pair, std::int64_t axes) {
  std::vector<std::int64_t> stretches(static_cast<std::size_t>(axes));
  std::int64_t last = -1, steps = 0, changes = 0;
  for (const std::int64_t axis : axis_of_pair) {
    if (axis < 0) continue;
    steps += last >= 0 ? 1 : 0;
    changes += last >= 0 && axis != last ? 1 : 0;
    if (axis != last) ++stretches[static_cast<std::size_t>(axis)];
    last = axis;
  }
  if (std::ranges::all_of(stretches, [](std::int64_t n) { return n <= 1; }))
    return AxisLayout::sections;
  // The last pairs of an interleaved layout may all be of one axis.
  return 2 * changes >= steps ? AxisLayout::interleaved : AxisLayout::mixed;
}

}  // namespace

std::optional<AxisLine> fit_axes(const std::vector<std::vector<std::int64_t>>& positions,
                                 const Turning& turning) {
  std::optional<AxisLine> best;
  double least = 0, second = 0;
  for (std::size_t axis = 0; axis < positions.size(); ++axis) {
    const auto line = fit_line(positions[axis], turning);
    if (!line) continue;
    const double off = off_line(positions[axis], turning, *line);
    if (!best || off < least) {
      second = best ? least : off;
      best = AxisLine{*line, static_cast<std::int64_t>(axis)};
      least = off;
    } else if (second <= least || off < second) {
      second = off;
    }
  }
  // Slow pairs are explained by all axes alike.
  if (best && positions.size() > 1 && second < 4 * std::max(least, turning.spread)) best->axis = -1;
  return best;
}

void share_axes(std::int64_t axes, Identified& out) {
  std::vector<std::int64_t> axis_of_pair(static_cast<std::size_t>(out.rotary_dim / 2), -1);
  out.axis_pairs.assign(static_cast<std::size_t>(axes), 0);
  std::int64_t unknown = 0;
  for (const IdentifiedPair& pair : out.pairs) {
    const std::int64_t index = pair_index(out, pair);
    if (pair.axis < 0) {
      ++unknown;
    } else if (index >= 0 && index < std::ssize(axis_of_pair)) {
      axis_of_pair[static_cast<std::size_t>(index)] = pair.axis;
      ++out.axis_pairs[static_cast<std::size_t>(pair.axis)];
    }
  }
  out.axis_layout = layout_of(axis_of_pair, axes);
  if (unknown > 0)
    out.cannot_tell.push_back("axis of " + std::to_string(unknown) +
                              " pairs: they turn less than the noise; dump a larger picture");
}

std::string axes_text(const Identified& found) {
  std::string pairs;
  for (const std::int64_t count : found.axis_pairs)
    pairs += (pairs.empty() ? "" : ", ") + std::to_string(count);
  return std::string(name(found.axis_layout)) + ": " + pairs + " pairs";
}

}  // namespace posenc::detail
