// DeBERTa's disentangled attention. The mathematics is in src/schemes/deberta.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Deberta {
  std::int64_t position_buckets = 256, max_relative_positions = 512;
  bool c2p = true, p2c = true;
  Table key = {}, query = {};  // [heads][rows][head_dim], borrowed: projected relative embeddings

  static constexpr std::string_view
      name = "deberta",
      aliases = "disentangled", title = "DeBERTa's disentangled attention",
      formula = "q_i·K_δ(i−j) + k_j·Q_δ(i−j), δ = sign·log bucket of the distance, all /√(3d)",
      paper = "2006.03654";
  static constexpr auto fields() {
    return std::tuple{Field{"position_buckets", &Deberta::position_buckets,
                            "rows on each side; -1: no logarithm, every distance its own row",
                            Range{.least = -1, .most = 65536}, "buckets", "num_buckets"},
                      Field{"max_relative_positions", &Deberta::max_relative_positions,
                            "distance that the last bucket stands for",
                            Range{.least = 2, .most = 1 << 20}, "tokens", "max_distance"},
                      Field{"c2p", &Deberta::c2p, "content to position: q_i·K"},
                      Field{"p2c", &Deberta::p2c, "position to content: k_j·Q"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;
  bool operator==(const Deberta&) const = default;
};

// DeBERTa's bucket of a relative position (query − key), before the shift by position_buckets.
Expected<std::int64_t> deberta_bucket(std::int64_t relative, std::int64_t position_buckets,
                                      std::int64_t max_position);

}  // namespace posenc
