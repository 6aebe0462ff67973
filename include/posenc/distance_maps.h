// Distance maps of RoPE: what distances beyond those of training are taken for, in place of a
// scaling or beside one. Each rotates queries two or three times, by regions. A map is a struct
// here, a word in the list at the end, and one function in src/schemes/distance_maps.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>

#include "posenc/error.h"
#include "posenc/fields.h"
#include "posenc/plan.h"

namespace [[gnu::visibility("default")]] posenc {

// Every distance as it is.
struct NoMap {
  static constexpr std::string_view name = "none", title = "no distance map";
  static constexpr auto fields() { return std::tuple{}; }
  Expected<std::optional<Regions>> regions() const { return std::nullopt; }
  bool operator==(const NoMap&) const = default;
};

// All distances from `window` on count as it or, leaky, grow `growth` times as slowly.
struct ReRope {
  std::int64_t window = 512, growth = 1;

  static constexpr std::string_view name = "rerope", title = "ReRoPE";
  static constexpr auto fields() {
    return std::tuple{Field{"map_window", &ReRope::window, "distances from it on count as it",
                            Range{.least = 1, .most = 1e12}, "tokens"},
                      Field{"map_group", &ReRope::growth,
                            "how many times as slowly they grow (leaky); 1: not at all",
                            Range{.least = 1, .most = 1e6}}};
  }
  Expected<std::optional<Regions>> regions() const;
  bool operator==(const ReRope&) const = default;
};

// Distances from `window` on are counted in groups of `group` tokens. 2401.01325.
struct SelfExtend {
  std::int64_t window = 512, group = 1;

  static constexpr std::string_view name = "self_extend", title = "SelfExtend";
  static constexpr auto fields() {
    return std::tuple{Field{"map_window", &SelfExtend::window, "distances below it stay",
                            Range{.least = 1, .most = 1e12}, "tokens"},
                      Field{"map_group", &SelfExtend::group, "tokens of a group",
                            Range{.least = 1, .most = 1e6}}};
  }
  Expected<std::optional<Regions>> regions() const;
  bool operator==(const SelfExtend&) const = default;
};

// Positions are counted within chunks. 2402.17463, Qwen2.5-1M.
struct DualChunk {
  std::int64_t chunk_size = 0, local_size = 0;

  static constexpr std::string_view name = "dual_chunk", title = "dual chunk attention";
  static constexpr auto fields() {
    return std::tuple{
        Field{"chunk_size", &DualChunk::chunk_size, "the largest distance",
              Range{.least = 0, .most = 1e12}, "tokens"},
        Field{"local_size", &DualChunk::local_size, "so much less than chunk_size is a chunk",
              Range{.least = 0, .most = 1e12}, "tokens"}};
  }
  std::int64_t chunk() const { return chunk_size - local_size; }  // tokens of one
  // Where a query stands for keys that are further back than the chunk before.
  std::int64_t far_query() const { return std::min(2 * chunk() - 1, chunk_size); }
  // Errors: local_size is not below chunk_size.
  Expected<std::optional<Regions>> regions() const;
  bool operator==(const DualChunk&) const = default;
};

// The list of distance maps.
using DistanceMap = std::variant<NoMap, ReRope, SelfExtend, DualChunk>;

}  // namespace posenc
