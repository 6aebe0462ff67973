// Distance maps of a query at i and a key at j, as the regions that rotate for them. With w =
// window, k = growth or group and c = chunk_size − local_size:
//   rerope       i − j below w, then w: the query at w, the key at 0; leaky (k > 1) w + (i − j −
//                w)/k: frequencies over k, the query w·(k − 1) further on
//   self_extend  i − j below w, then ⌊i/k⌋ + w − ⌊w/k⌋ − ⌊j/k⌋
//   dual_chunk   keys at p mod c; queries at p mod c for keys of their chunk, at min(p mod c + c,
//                chunk_size) for those of the one before, at min(2c − 1, chunk_size) for those
//                before that
#include <string>

#include "posenc/distance_maps.h"

namespace posenc {

using Region = Regions::Region;

Expected<std::optional<Regions>> ReRope::regions() const {
  const Region far = growth == 1
                         ? Region{.query = {.modulus = 1, .offset = window}, .key = {.modulus = 1}}
                         : Region{.query = {.offset = window * (growth - 1)},
                                  .frequency_scale = 1 / static_cast<double>(growth)};
  return Regions{.window = window, .region = {{}, far}};
}

Expected<std::optional<Regions>> SelfExtend::regions() const {
  const Region far{.query = {.divisor = group, .offset = window - window / group},
                   .key = {.divisor = group}};
  return Regions{.window = window, .region = {{}, far}};
}

Expected<std::optional<Regions>> DualChunk::regions() const {
  const std::int64_t c = chunk();
  if (c < 1)
    return fail("rope: dual_chunk", "chunk_size must be above local_size",
                std::to_string(chunk_size) + " and " + std::to_string(local_size),
                "give both as dual_chunk_attention_config has them");
  const PositionMap within{.modulus = c};
  return Regions{
      .chunk = c,
      .region = {{.query = within, .key = within},
                 {.query = {.modulus = c, .offset = c, .most = chunk_size}, .key = within},
                 {.query = {.modulus = 1, .offset = far_query()}, .key = within}}};
}

}  // namespace posenc
