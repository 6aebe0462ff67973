// Rows of tensors as the numbers that are computed with, and back; and the loops over such rows
// that are no matrix product. T is float or double.
#pragma once

#include <cstdint>

#include "posenc/tensor.h"

namespace posenc::detail {

// Rows are this many numbers apart or a multiple of it, so that vectors may run to a row's end.
constexpr std::int64_t row_lanes = 16;
constexpr std::int64_t padded(std::int64_t count) {
  return (count + row_lanes - 1) / row_lanes * row_lanes;
}

// `rows` rows [seq][head_dim] of x, of any dtype, from element `from` on; x.stride[2] leads to the
// next. Numbers from head_dim up to padded(head_dim) become 0.
void load_rows(const Tensor& x, std::int64_t from, std::int64_t rows, float* to,
               std::int64_t to_step);
void load_rows(const Tensor& x, std::int64_t from, std::int64_t rows, double* to,
               std::int64_t to_step);

// And back, each number times `factor` and rounded once.
void store_rows(const float* from, std::int64_t from_step, std::int64_t rows, float factor,
                const Tensor& x, std::int64_t to);
void store_rows(const double* from, std::int64_t from_step, std::int64_t rows, double factor,
                const Tensor& x, std::int64_t to);

// x[row][0 .. columns) *= factor
void scale_row(float* x, std::int64_t columns, float factor);
void scale_row(double* x, std::int64_t columns, double factor);

bool all_finite(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns);
bool all_finite(const double* x, std::int64_t step, std::int64_t rows, std::int64_t columns);

// to[i] += a[i] · b[i]
void add_products(const float* a, const float* b, std::int64_t count, float* to);
void add_products(const double* a, const double* b, std::int64_t count, double* to);

// Σ a·b, in another order than from left to right.
float dot(const float* a, const float* b, std::int64_t count);
double dot(const double* a, const double* b, std::int64_t count);

// to[j] = q · k[j] for `keys` rows of keys. `values` [key][v_step], if given, are asked for as
// well: memory is what a single query waits for, and its values are read next.
void dots(const float* q, const float* k, std::int64_t k_step, std::int64_t keys,
          std::int64_t head_dim, const float* values, std::int64_t v_step, float* to);
void dots(const double* q, const double* k, std::int64_t k_step, std::int64_t keys,
          std::int64_t head_dim, const double* values, std::int64_t v_step, double* to);

// to[i] = slope · x[i] + offset, rounded once.
void line_of_doubles(const double* x, double slope, double offset, std::int64_t count, float* to);
void line_of_doubles(const double* x, double slope, double offset, std::int64_t count, double* to);

// Σ w[i], Σ w[i] x[i] and Σ w[i] y[i], in double.
struct Moments {
  double sum = 0, by_x = 0, by_y = 0;
};
Moments moments(const float* w, const double* x, const double* y, std::int64_t count);
Moments moments(const double* w, const double* x, const double* y, std::int64_t count);

// to[i] += numbers[min(max(at[i] + start, 0), last)]; neither |at[i]| nor |start| is above 2^30.
void add_entries(const float* numbers, std::int32_t last, const std::int32_t* at,
                 std::int32_t start, std::int64_t count, float* to);
void add_entries(const double* numbers, std::int32_t last, const std::int32_t* at,
                 std::int32_t start, std::int64_t count, double* to);

// sum[i] += x[i]
void add_to_doubles(const float* x, std::int64_t count, double* sum);
void add_to_doubles(const double* x, std::int64_t count, double* sum);

}  // namespace posenc::detail
