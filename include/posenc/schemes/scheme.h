// What all schemes have in common: the model around one, and fields that several have.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "posenc/error.h"
#include "posenc/fields.h"
#include "posenc/plan.h"

namespace [[gnu::visibility("default")]] posenc {

// The model around a scheme. Zero means not known; a scheme that needs it says so.
struct Geometry {
  std::int64_t width = 0;     // channels of the embedding
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // key and value heads
  std::int64_t head_dim = 0;  // channels of a query or key head
  std::int64_t length = 0;    // largest position + 1 to compile for; 0: as the model is constructed
  std::int64_t grid_height = 0, grid_width = 0;  // patches of a picture
  bool operator==(const Geometry&) const = default;
};

// Which way the rows of a table of distances run.
enum class RowOrder { key_minus_query, query_minus_key };

namespace detail {
template <class S>
constexpr auto theta_field() {
  return Field{"rope_theta", &S::rope_theta, "base of the frequencies", above_one,
               "",           "theta base"};
}
template <class S>
constexpr auto pairing_field() {
  return Field{"pairing", &S::pairing, "halves: (r, r + d/2); interleaved: (2r, 2r + 1)"};
}
}  // namespace detail

}  // namespace posenc
