// Relative vectors (Shaw). The mathematics is in src/schemes/shaw.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Shaw {
  std::int64_t max_distance = 16;
  std::optional<std::int64_t> max_ahead = {};
  bool use_values = true;
  bool use_keys = false;
  bool zero_beyond = false;
  RowOrder row_order = RowOrder::key_minus_query;
  Table key = {}, value = {}, query = {};  // [k + 1 + ahead][head_dim], borrowed

  static constexpr std::string_view
      name = "shaw",
      aliases = "relative relative_key", title = "relative vectors (Shaw)",
      formula = "q_i·(k_j + a^K_c)/√d, out Σα(v_j + a^V_c), c = clip(j−i, −k, k) + k",
      paper = "1803.02155";
  static constexpr auto fields() {
    return std::tuple{
        Field{"max_distance", &Shaw::max_distance, "k: distances are clipped to it", not_negative,
              "tokens", "k max_relative_position left_max_position_embeddings"},
        Field{"max_ahead", &Shaw::max_ahead, "the same for keys ahead of the query; null: k",
              not_negative, "tokens", "right_max_position_embeddings"},
        Field{"use_values", &Shaw::use_values, "vectors on the values as well"},
        Field{"use_keys", &Shaw::use_keys, "also k_j·a_c (BERT's relative_key_query)"},
        Field{"zero_beyond", &Shaw::zero_beyond,
              "distances beyond have no vector, and are not clipped (VITS)"},
        Field{"row_order", &Shaw::row_order, "which way the table's rows run"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;
  bool operator==(const Shaw&) const = default;
};

}  // namespace posenc
