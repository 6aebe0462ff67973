// M-RoPE's two ways to deal pairs to the axes (t, h, w):
//   sections (Qwen2-VL, 2409.12191): the first section[0] pairs take t, the next section[1] h, then
//     w;
//   interleaved (Qwen3-VL): pair r takes h if r mod 3 = 1 and r < 3·section[h], w if r mod 3 = 2
//     and
//   r < 3·section[w], else t. For [24, 20, 20] pairs 60 to 63 take t; ggml gives 61 and 62 to a
//   fourth stream that is zero for text, about 0.1 rad apart at 262k positions. We do as the
//     model's
//   own code does.
#include "src/schemes/mrope.h"

#include <algorithm>
#include <string>

namespace posenc::detail {

Expected<std::vector<std::int64_t>> mrope_axes(const std::vector<std::int64_t>& section,
                                               bool interleaved, std::int64_t pairs) {
  const auto axes = static_cast<std::int64_t>(section.size());
  if (axes < 2 || axes > 4) {
    return fail("rope: mrope_section", "needs two to four sections", std::to_string(axes),
                "time, height, width");
  }
  std::int64_t sum = 0;
  for (const std::int64_t s : section) {
    if (s < 0 || s > pairs) {
      return fail("rope: mrope_section", "each section lies within 0 and the number of pairs",
                  std::to_string(s), "sections count pairs, not channels");
    }
    sum += s;
  }
  if (sum != pairs) {
    return fail("rope: mrope_section",
                "sections must sum to rotary_dim/2 = " + std::to_string(pairs), std::to_string(sum),
                "sections count pairs, not channels");
  }

  std::vector<std::int64_t> axis(static_cast<std::size_t>(pairs), 0);
  if (interleaved) {
    for (std::int64_t r = 0; r < pairs; ++r) {
      const std::int64_t candidate = r % axes;
      if (candidate != 0 && r < axes * section[static_cast<std::size_t>(candidate)]) {
        axis[static_cast<std::size_t>(r)] = candidate;
      }
    }
    return axis;
  }
  std::size_t r = 0;
  for (std::int64_t a = 0; a < axes; ++a) {
    for (std::int64_t i = 0; i < section[static_cast<std::size_t>(a)]; ++i) axis[r++] = a;
  }
  return axis;
}

Expected<std::vector<std::int64_t>> axis_of_each_pair(const Rope& rope, std::int64_t pairs) {
  const std::vector<std::int64_t>& list = rope.pair_axes;
  if (list.empty()) return mrope_axes(rope.mrope_section, rope.mrope_interleaved, pairs);
  const bool fits =
      std::ranges::all_of(list, [](std::int64_t axis) { return axis >= 0 && axis < 8; });
  if (!fits || std::ssize(list) != pairs || !rope.mrope_section.empty()) {
    return fail("rope: pair_axes",
                "needs an axis from 0 to 7 for each of the " + std::to_string(pairs) +
                    " pairs, and no mrope_section beside it",
                std::to_string(list.size()), "say the axes of the pairs once");
  }
  return list;
}

std::vector<double> spread_over_axes(const std::vector<double>& frequency,
                                     const std::vector<std::int64_t>& axis_of_pair,
                                     std::int64_t axes) {
  const std::size_t pairs = frequency.size();
  std::vector<double> spread(static_cast<std::size_t>(axes) * pairs, 0.0);
  for (std::size_t r = 0; r < pairs; ++r) {
    spread[static_cast<std::size_t>(axis_of_pair[r]) * pairs + r] = frequency[r];
  }
  return spread;
}

}  // namespace posenc::detail
