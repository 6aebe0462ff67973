// Rotation by vectors: queries, keys or both, several tokens of all heads.
#pragma once

#include <cstdint>
#include <span>

#include "posenc/apply.h"
#include "src/kernels/cos_sin_rows.h"

namespace posenc::detail {

// Tensors rotated by the same rows: [batch, head, seq, head_dim], batch and seq alike.
struct RotateJob {
  const Rotate* plan = nullptr;
  CosSinRule rule = {};
  const Positions* positions = nullptr;  // not where angles are given
  Tensor angles = {};  // [batch or 1, head or 1, seq, pair]: given, instead of made from positions
  int count = 0;
  Tensor x[2] = {}, out[2] = {};
  // One row serves a token of every sequence. Otherwise tokens are counted through all sequences.
  bool shared = false;

  std::int64_t tokens() const { return shared ? x[0].shape[2] : x[0].shape[0] * x[0].shape[2]; }
  // What is read of a token, of all that a row serves.
  std::int64_t token_bytes() const {
    std::int64_t bytes = 0;
    for (int i = 0; i < count; ++i)
      bytes += x[i].size() * static_cast<std::int64_t>(size_of(x[i].dtype));
    return tokens() > 0 ? bytes / tokens() : 0;
  }
};

// Rotates tokens [first, last).
void rotate_tokens(const RotateJob& job, std::int64_t first, std::int64_t last);

// The rows that 16-bit tensors are rotated by, for tests: of each position cos[pairs], then
// sin[pairs], both in whole multiples of CosSinRows::lanes.
void float_rows(const CosSinRule& rule, std::span<const std::int64_t> positions, float* to);

}  // namespace posenc::detail
