#include "evidence/bench/harness/products16.h"

#include <algorithm>
#include <cstddef>
#include <memory>

namespace posenc::detail {
namespace {

constexpr std::int64_t line = 64 / sizeof(Pair16);  // tiles across cache lines take twice the time
constexpr Pair16 ones = 0x3f803f80;

}  // namespace

AttentionProducts16::AttentionProducts16(std::int64_t n, std::int64_t head_dim)
    : times_(std::max<std::int64_t>(n * n / (queries_ * keys_), 1)),
      pairs_(padded_pairs(head_dim)),
      columns_((head_dim + gemm16_rows - 1) / gemm16_rows * gemm16_rows),
      memory_(static_cast<std::size_t>((queries_ + keys_) * pairs_ +
                                       (queries_ * keys_ + keys_ * columns_) / 2 +
                                       queries_ * (keys_ + columns_) + line),
              ones),
      next_(memory_.data()) {
  while (reinterpret_cast<std::uintptr_t>(next_) % 64 != 0) ++next_;
  q_ = take(queries_ * pairs_);
  k_ = take(keys_ * pairs_);
  weights_ = take(queries_ * keys_ / 2);
  v_ = take(keys_ * columns_ / 2);
  logits_ = reinterpret_cast<float*>(take(queries_ * keys_));
  sums_ = reinterpret_cast<float*>(take(queries_ * columns_));
}

Pair16* AttentionProducts16::take(std::int64_t count) {
  Pair16* const taken = next_;
  next_ += count;
  return taken;
}

void AttentionProducts16::multiply() {
  for (std::int64_t i = 0; i < times_; ++i) {
    gemm16({.c = logits_,
            .c_step = keys_,
            .rows = queries_,
            .columns = keys_,
            .a = q_,
            .a_step = pairs_,
            .b = k_,
            .b_step = panel_,
            .depth = pairs_,
            .panel_columns = panel_,
            .panel_step = panel_ * pairs_});
    gemm16({.c = sums_,
            .c_step = columns_,
            .rows = queries_,
            .columns = columns_,
            .a = weights_,
            .a_step = keys_ / 2,
            .b = v_,
            .b_step = columns_,
            .depth = keys_ / 2});
  }
}

}  // namespace posenc::detail
