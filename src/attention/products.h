// The one product that the gradients of attention are made of, by vectors where there are any.
#pragma once

#include <cstdint>

namespace posenc::detail {

// y[r][0 .. columns) += Σ_t weight[r][t] · x[t][0 .. columns), t in order. Steps are in numbers.
template <class T>
struct Product {
  T* y;
  std::int64_t y_step, rows, columns;
  const T* weight;
  std::int64_t weight_row, weight_step;
  const T* x;
  std::int64_t x_step, terms;
  bool skips_zeros = false;  // a weight of 0 adds nothing, whatever x is
};

void add_product(const Product<float>& product);
void add_product(const Product<double>& product);

}  // namespace posenc::detail
