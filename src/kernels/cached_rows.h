// Products of a few rows of floats with the rows of a cache, read where they lie and once for all
// of the few: what decoding does. Making floats of 16 or 8 bits first would take longer than
// reading them.
#pragma once

#include <cstdint>

#include "posenc/tensor.h"

namespace posenc::detail {

// Rows of a head, of 32, 16 or 8 bits, their numbers beside each other.
struct CachedRows {
  const void* first = nullptr;
  DType dtype = DType::bf16;
  std::int64_t step = 0;  // in numbers

  CachedRows from(std::int64_t row) const { return from_number(row * step); }
  CachedRows from_number(std::int64_t number) const {
    return {static_cast<const char*>(first) + bytes_of(dtype, number), dtype, step};
  }
};
// Whether x [.., seq, head_dim] has such rows, of a width that is read without a rest.
bool has_cached_rows(const Tensor& x);

// load_rows() of rows.h, of x in 8 bits too.
void load_cached_rows(const Tensor& x, std::int64_t from, std::int64_t rows, float* to,
                      std::int64_t to_step);
void load_cached_rows(const Tensor& x, std::int64_t from, std::int64_t rows, double* to,
                      std::int64_t to_step);

// to[row][key] = q[row] · k[key], of `width` numbers. `values` (of as many keys, or null) are asked
// for as well: memory is what this waits for, and they are read next.
void cached_dots(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                 std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                 const CachedRows* values);

// sums[row] += Σ_key weights[row][key] · v[key], of `width` numbers.
void add_cached(const CachedRows& v, std::int64_t keys, std::int64_t width, const float* weights,
                std::int64_t weights_step, std::int64_t rows, float* sums, std::int64_t sums_step);

}  // namespace posenc::detail
