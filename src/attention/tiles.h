// The arithmetic of attention by vectors: a tile of queries meets a block of keys and values. What is
// seen, and what position adds, has been decided by the caller (fused.cc).
#pragma once

#include <cstdint>

#include "posenc/tensor.h"

namespace posenc::detail {

constexpr int tile_rows = 6;  // queries whose sums fill the registers together

// Rows of queries, their running softmax and their sums; all float. Every pointer with a step has
// `rows` rows. Keys come as panels of panel_width() keys, [panel][head_dim][key], or, where the tile
// is short, as rows.
struct Tile {
  int rows = 0;
  std::int64_t head_dim = 0, first = 0, last = 0;  // keys [first, last) of the block matter
  const float* q = nullptr;                        // scaled by what the logits are
  std::int64_t q_step = 0;
  const float* panels = nullptr;  // null: keys are rows
  const float* k = nullptr;
  std::int64_t k_step = 0;
  const float* v = nullptr;             // [key][v_step], head_dim rounded up to 16 may be read
  std::int64_t v_step = 0, values = 0;  // of so many keys
  bool v_finite = true;                 // else hidden values must not be touched
  const float* bias[tile_rows] = {};    // [key] added to the logits; null: nothing
  float bias_factor[tile_rows] = {};    // times this
  const float* hide[tile_rows] = {};    // [key] below zero: hidden; null: [begin, end) says it all
  std::int64_t begin[tile_rows] = {};   // keys that the row sees
  std::int64_t end[tile_rows] = {};
  float* peak[tile_rows] = {};  // largest logit so far
  float* sum[tile_rows] = {};   // of e^(logit − peak)
  float* out = nullptr;         // Σ e^(logit − peak) · value, [row][out_step]
  std::int64_t out_step = 0;
  float* weights = nullptr;  // [row][weights_step]: gets e^(logit − peak) of the block
  std::int64_t weights_step = 0;
  float shrink[tile_rows] = {};  // gets what older sums were multiplied by
  float added[tile_rows] = {};   // gets the sum of the block's weights
};

void attend_tile(Tile& tile);

// Keys of a panel; the tile's first and last are rounded outwards to it.
std::int64_t panel_width();

// Rows [count][head_dim] of a tensor of any dtype but double, from element `from` on, as floats.
void load_rows(const Tensor& x, std::int64_t from, std::int64_t count, std::int64_t head_dim,
               float* to, std::int64_t to_step);
// Keys as panels; behind the last key stand zeros.
void make_panels(const float* k, std::int64_t k_step, std::int64_t count, std::int64_t head_dim,
                 float* panels);
bool all_finite(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns);
float product(const float* a, const float* b, std::int64_t count);

}  // namespace posenc::detail
