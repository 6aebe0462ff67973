// What attention that streams over its keys spends its time in, by vectors: a block of keys against a
// few queries. float and double; nothing here knows a scheme.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/attention/products.h"

namespace posenc::detail {

constexpr std::int64_t block_keys = 64;  // a word of a mask
constexpr std::int64_t row_lanes = 16;   // rows of head_dim are padded with zeros to a multiple

// scores[row][key] = q[row]·k[key], q [rows][dim] and keys turned over, kt [dim][block_keys].
template <class T>
void products(const T* q, const T* kt, std::int64_t rows, std::int64_t dim, T* scores) {
  std::fill_n(scores, rows * block_keys, T{0});
  add_product(Product<T>{.y = scores,
                         .y_step = block_keys,
                         .rows = rows,
                         .columns = block_keys,
                         .weight = q,
                         .weight_row = dim,
                         .weight_step = 1,
                         .x = kt,
                         .x_step = block_keys,
                         .terms = dim});
}

// out[row] += Σ_key weights[row][key] v[key], v [block_keys][dim], out [rows][dim]. Where v is not all
// finite a weight of 0 adds nothing still.
template <class T>
void accumulate(const T* weights, const T* v, bool finite, std::int64_t rows, std::int64_t dim,
                T* out) {
  add_product(Product<T>{.y = out,
                         .y_step = dim,
                         .rows = rows,
                         .columns = dim,
                         .weight = weights,
                         .weight_row = block_keys,
                         .weight_step = 1,
                         .x = v,
                         .x_step = dim,
                         .terms = block_keys,
                         .skips_zeros = !finite});
}

// What follows takes the block_keys numbers of a row. −inf and NaN go in and come out as they should.

float largest(const float* x);
double largest(const double* x);

// x ← e^(x − shift); the sum of them all. x is never much above shift.
float exponentials(float* x, float shift);
double exponentials(double* x, double shift);

// σ(x) = 1/(1 + e^−x)
void sigmoids(const float* x, float* out);
void sigmoids(const double* x, double* out);

// ln(1 + e^−|x|), of which ln σ(x) = min(x, 0) − it and ln(1 − σ(x)) = −max(x, 0) − it.
void softplus_tails(const float* x, float* out);
void softplus_tails(const double* x, double* out);

}  // namespace posenc::detail
