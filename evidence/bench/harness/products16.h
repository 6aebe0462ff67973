// What attention in bfloat16 could do at most: its products, and nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "src/kernels/gemm16.h"

namespace posenc::detail {

// Both products of an attention of n queries and keys by bfloat16, 32 queries and 512 keys at a
// time, over and over on the same memory.
class AttentionProducts16 {
 public:
  AttentionProducts16(std::int64_t n, std::int64_t head_dim);
  bool present() const { return chosen_products16() != Products16::none; }
  void multiply();

 private:
  static constexpr std::int64_t queries_ = 32, keys_ = 512, panel_ = 64;
  Pair16* take(std::int64_t count);

  const std::int64_t times_, pairs_, columns_;
  std::vector<Pair16> memory_;
  Pair16 *next_, *q_, *k_, *weights_, *v_;
  float *logits_, *sums_;
};

}  // namespace posenc::detail
