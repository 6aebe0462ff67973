// T5 bucketed bias. The mathematics is in src/schemes/t5.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct T5 {
  std::int64_t num_buckets = 32, max_distance = 128;
  bool bidirectional = false;
  Table table = {};  // [num_buckets][heads], borrowed

  static constexpr std::string_view
      name = "t5",
      aliases = "t5-bucket t5_bias", title = "T5 bucketed bias",
      formula = "bucket = n below half, then half + ⌊ln(n/half)/ln(max/half)·(buckets−half)⌋",
      paper = "1910.10683";
  static constexpr auto fields() {
    return std::tuple{
        Field{"num_buckets", &T5::num_buckets, "rows of the table",
              Range{.least = 2, .most = 65536}, "buckets", "relative_attention_num_buckets"},
        Field{"max_distance", &T5::max_distance, "distances from here on share the last bucket",
              Range{.least = 2, .most = 1 << 20}, "tokens", "relative_attention_max_distance"},
        Field{"bidirectional", &T5::bidirectional, "half of the buckets for keys in the future"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads
  bool operator==(const T5&) const = default;
};

// T5's bucket of a relative position (key − query).
Expected<std::int64_t> t5_bucket(std::int64_t relative, std::int64_t num_buckets,
                                 std::int64_t max_distance, bool bidirectional);

}  // namespace posenc
