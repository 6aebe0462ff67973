// One query's row of the gradients of attention: from products to weights, by vectors where there are any.
#pragma once

#include <cstdint>

namespace posenc::detail {

// Keys that rows are rounded up to.
constexpr std::int64_t key_block = 64;

// All that a query may see, whole blocks of keys, the hidden ones among them.
template <class T>
struct QueryRow {
  std::int64_t keys = 0;
  const T* hide = nullptr;  // 0: seen, −inf: hidden
  const T* bias = nullptr;  // null: none
  bool bias_before_scale = false;
  T scale = 1;
  T* weight = nullptr;  // in: q·k. Out: the weight α of the key, 0 where hidden
  T* delta = nullptr;   // in: e, the gradient by α. Out: α (e − Σ α e), the gradient by the logit
};

// Weights that would be subnormal, as of tokens far away, are 0. All are 0 where nothing is seen, NaN
// where what is seen is.
void find_weights(const QueryRow<float>& row);
void find_weights(const QueryRow<double>& row);

// Σ a·b, in another order than from left to right.
float dot(const float* a, const float* b, std::int64_t count);
double dot(const double* a, const double* b, std::int64_t count);

}  // namespace posenc::detail
