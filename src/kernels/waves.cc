#include "src/kernels/waves.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace posenc::detail {
namespace {

std::span<const double> frequencies(const Waves& waves, std::int64_t axis, std::int64_t first_pair,
                                    std::int64_t pairs) {
  return std::span(waves.frequency)
      .subspan(static_cast<std::size_t>(axis * waves.pairs() + first_pair),
               static_cast<std::size_t>(pairs));
}

// The one axis whose frequencies are not all zero; the first where all are.
std::optional<std::int64_t> axis_of(const Waves& waves, std::int64_t first_pair,
                                    std::int64_t pairs) {
  std::optional<std::int64_t> found;
  for (std::int64_t axis = 0; axis < waves.axes; ++axis) {
    const auto of_axis = frequencies(waves, axis, first_pair, pairs);
    if (std::ranges::all_of(of_axis, [](double f) { return f == 0; })) continue;
    if (found) return {};
    found = axis;
  }
  return found.value_or(0);
}

}  // namespace

WaveChannels channels(const Waves& waves, std::int64_t pair) {
  std::int64_t start = 0, r = pair, pairs = waves.pairs();
  for (const std::int64_t block : waves.blocks) {
    pairs = block / 2;
    if (r < pairs) break;
    r -= pairs;
    start += block;
  }
  const bool interleaved = waves.layout == WaveLayout::interleaved;
  const std::int64_t first = start + (interleaved ? 2 * r : r);
  const std::int64_t second = interleaved ? first + 1 : first + pairs;
  return waves.cosine_first ? WaveChannels{second, first} : WaveChannels{first, second};
}

std::optional<std::vector<WavePiece>> pieces_of(const Waves& waves) {
  std::vector<WavePiece> pieces;
  if (waves.axes == 1 && waves.blocks.empty()) return pieces;
  std::int64_t channel = 0, pair = 0;
  const auto add = [&](std::int64_t width, std::int64_t pairs) {
    const auto axis = axis_of(waves, pair, pairs);
    if (!axis) return false;
    const auto of_axis = frequencies(waves, *axis, pair, pairs);
    pieces.push_back({.waves = waves, .first_channel = channel, .axis = *axis});
    Waves& piece = pieces.back().waves;
    piece.width = width;
    piece.axes = 1;
    piece.blocks.clear();
    piece.frequency.assign(of_axis.begin(), of_axis.end());
    channel += width;
    pair += pairs;
    return true;
  };
  for (const std::int64_t block : waves.blocks)
    if (!add(block, block / 2)) return {};
  if (waves.blocks.empty())
    return add(waves.width, waves.pairs()) ? std::optional(pieces) : std::nullopt;
  if (channel < waves.width) add(waves.width - channel, 0);  // zeros
  return pieces;
}

}  // namespace posenc::detail
