// Profiles of the distance. The mathematics is in src/schemes/profiles.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

enum class ProfileCurves {
  distances,  // a row for each distance from 0 to extent − 1; others add nothing
  buckets,    // T5's buckets
  ramp,       // −(i − j)
};

struct Profiles {
  ProfileCurves curves = ProfileCurves::distances;
  bool of_keys = false;
  std::int64_t profiles = 16;
  std::int64_t extent = 1024;
  std::int64_t num_buckets = 320, max_distance = 800;
  bool bidirectional = true;
  // Borrowed: of distances [profiles][extent], of buckets [num_buckets][heads · profiles], the
  // profiles of a head together.
  Table table = {};

  static constexpr std::string_view
      name = "profiles",
      aliases = "rel_logits gated_buckets", title = "profiles of the distance",
      formula =
          "Σ_u r_iu·P_u[i−j], r of the query's tokens (Inkling), or s_ju of the key's; after 1/√d",
      paper = "2110.13900";
  static constexpr auto fields() {
    return std::tuple{
        Field{"curves", &Profiles::curves,
              "distances: 0 to extent − 1 (Inkling); buckets: T5's (WavLM); ramp: "
              "−distance (GRAPE-A)"},
        Field{"of_keys", &Profiles::of_keys, "made of the key's token, not of the query's"},
        Field{"profiles", &Profiles::profiles, "u: numbers of a token and head",
              Range{.least = 1, .most = 65536}, "", "d_rel"},
        Field{"extent", &Profiles::extent, "distances from here on add nothing",
              Range{.least = 1, .most = 1 << 20}, "tokens", "rel_extent"},
        Field{"num_buckets", &Profiles::num_buckets, "of buckets: rows of the table",
              Range{.least = 2, .most = 65536}, "buckets"},
        Field{"max_distance", &Profiles::max_distance,
              "of buckets: distances from here on share the last",
              Range{.least = 2, .most = 1 << 20}, "tokens", "max_bucket_distance"},
        Field{"bidirectional", &Profiles::bidirectional,
              "of buckets: half of them for keys in the future"}};
  }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"table", &Profiles::table,
                   "P: [profiles][extent], of buckets [num_buckets][heads · profiles]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // buckets need heads, a ramp length
  bool operator==(const Profiles&) const = default;
};

}  // namespace posenc
