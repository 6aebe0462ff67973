// Positions made from numbers of any size: what comes out is what a plain loop would say.
#include "posenc/positions.h"

#include <algorithm>
#include <limits>

#include "tests/fuzz/bytes.h"
#include "tests/fuzz/check.h"

namespace posenc::fuzz {
namespace {

constexpr std::int64_t most = 1 << 12;  // tokens that one input may ask for: more only takes time

void check_moved(const Positions& positions, std::int64_t offset) {
  const auto there = positions.shifted(offset);
  if (!there) return check_error(there.error());
  for (std::int64_t t = 0; t < std::min(positions.size(), most); ++t) {
    const std::int64_t at = positions.at(t);
    must(there->at(t) == (at == -1 ? -1 : at + offset), "shifted moves every token alike");
  }
  if (offset == std::numeric_limits<std::int64_t>::min()) return;
  const auto back = there->shifted(-offset);
  must(back && *back == positions, "there and back is where it was");
}

void ids(Bytes& bytes) {
  const std::int64_t axes = bytes.integer(), batch = bytes.integer(), offset = bytes.integer();
  const std::vector<std::int64_t> list = bytes.integers();
  const auto made = Positions::ids(list, axes, batch);
  if (!made) return check_error(made.error());
  must(made->size() * axes * batch == static_cast<std::int64_t>(list.size()), "all ids are used");
  std::size_t i = 0;
  for (std::int64_t axis = 0; made->size() > 0 && axis < axes; ++axis)
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t t = 0; t < made->size(); ++t)
        must(made->at(t, b, axis) == list[i++], "ids are kept");
  if (axes == 1 && batch == 1) check_moved(*made, offset);
}

void mask(Bytes& bytes) {
  const std::int64_t batch = bytes.integer(), cached = bytes.integer(), padding = bytes.integer(),
                     offset = bytes.integer();
  const auto keep = bytes.rest().first(std::min<std::size_t>(bytes.rest().size(), 64));
  const auto made = Positions::from_mask(keep, batch, cached, padding);
  if (!made) return check_error(made.error());
  const std::int64_t columns = static_cast<std::int64_t>(keep.size()) / batch;
  must(made->batch() == batch || made->contiguous(), "a row for each sequence");
  must(made->size() == columns - cached, "a position for each new token");
  for (std::int64_t b = 0; b < batch && columns > 0; ++b) {
    std::int64_t real = 0;
    for (std::int64_t t = 0; t < columns; ++t) {
      const bool token = keep[static_cast<std::size_t>(b * columns + t)] != 0;
      if (t >= cached)
        must(made->at(t - cached, b) == (token ? real : padding), "real tokens are counted");
      real += token ? 1 : 0;
    }
  }
  if (batch == 1) check_moved(*made, offset);
}

void packed(Bytes& bytes) {
  const std::vector<std::int64_t> ends = bytes.integers();
  if (!ends.empty() && ends.back() > most && ends.back() <= std::int64_t{1} << 28) return;
  const auto made = Positions::packed(ends);
  if (!made) return check_error(made.error());
  must(made->size() == ends.back(), "a position for each token");
  for (std::int64_t t = 0; t < made->size(); ++t) {
    const auto s = static_cast<std::size_t>(made->segment(t));
    must(s + 1 < ends.size() && ends[s] <= t && t < ends[s + 1], "a token is in its sequence");
    must(made->at(t) == t - ends[s], "positions restart in each sequence");
  }
}

void vision(Bytes& bytes) {
  VisionTokens tokens{.image_token_id = 1, .video_token_id = 2};
  tokens.spatial_merge_size = bytes.integer();
  VisionRule rule;
  rule.advance = bytes.byte() % 2 ? GridAdvance::past_largest : GridAdvance::past_height_width;
  rule.step = static_cast<FrameStep>(bytes.byte() % 3);
  rule.tokens_per_second = bytes.byte() % 2 ? bytes.number() : 2;
  const std::vector<std::int64_t> images = bytes.integers(), videos = bytes.integers();
  std::vector<double> seconds(bytes.byte() % 4u);
  for (double& s : seconds) s = bytes.number();
  // What is left are runs of tokens: the low two bits say of which kind, the others how many.
  std::vector<std::int64_t> input;
  while (!bytes.rest().empty() && static_cast<std::int64_t>(input.size()) < most) {
    const std::uint8_t run = bytes.byte();
    input.insert(input.end(), run / 4u, run % 4);
  }
  const auto made = vision_positions(input, images, videos, tokens, rule, seconds);
  if (!made) return check_error(made.error());
  const Positions& positions = made->positions;
  const auto count = static_cast<std::int64_t>(input.size());
  must(positions.size() == count && positions.axes() == 3, "three rows, a position a token");
  must(made->delta == positions.length() - count, "delta leads to the next text position");
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t token = input[static_cast<std::size_t>(t)];
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      must(positions.at(t, 0, axis) >= 0, "no position is negative");
      if (token != 1 && token != 2)
        must(positions.at(t, 0, axis) == positions.at(t), "text stands alike on all axes");
    }
  }
}

void patches(Bytes& bytes) {
  const std::int64_t height = bytes.integer(), width = bytes.integer(), merge = bytes.integer(),
                     frames = bytes.integer();
  std::int64_t count = 0;
  const bool huge = height != 0 && width != 0 && frames != 0 &&
                    (__builtin_mul_overflow(height, width, &count) ||
                     __builtin_mul_overflow(count, frames, &count));
  if (!huge && count > most && count <= std::int64_t{1} << 27) return;
  const auto made = patch_positions(height, width, merge, frames);
  if (!made) return check_error(made.error());
  must(made->size() == count, "a position for each patch");
  std::int64_t rows = 0, columns = 0;
  for (std::int64_t t = 0; t < count; ++t) {
    must(made->at(t, 0, 0) >= 0 && made->at(t, 0, 0) < height, "rows lie in the picture");
    must(made->at(t, 0, 1) >= 0 && made->at(t, 0, 1) < width, "columns lie in the picture");
    rows += made->at(t, 0, 0);
    columns += made->at(t, 0, 1);
  }
  must(2 * rows == count * (height - 1) || count == 0, "every row as often as the others");
  must(2 * columns == count * (width - 1) || count == 0, "every column as often as the others");
}

}  // namespace
}  // namespace posenc::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc::fuzz;
  Bytes bytes({data, size});
  constexpr void (*makers[])(Bytes&) = {ids, mask, packed, vision, patches};
  makers[bytes.byte() % std::size(makers)](bytes);
  return 0;
}
