// The matrix product that attention and its gradients are made of, by vectors where there are any.
#pragma once

#include <cstdint>

namespace posenc::detail {

// c[row][column] = Σ_k a(row, k) · b(k, column), k in order, whatever else is computed beside it.
// Steps are in numbers.
template <class T>
struct Gemm {
  T* c = nullptr;
  std::int64_t c_step = 0, rows = 0, columns = 0;
  const T* a = nullptr;  // a(row, k) = a[row · a_row + k · a_step]
  std::int64_t a_row = 0, a_step = 1;
  const T* b = nullptr;  // b(k, column) = b[k · b_step + column], or of panels:
  std::int64_t b_step = 0;
  std::int64_t depth = 0;
  // Columns lie in panels of panel_columns(), one matrix behind the other, `panel_step` apart; 0:
  // in one.
  std::int64_t panel_step = 0;
  bool adds = false;  // to what c holds
  // [row] of [column]: added to the whole of each sum, as it is stored; null: nothing. Not with
  // `adds` or `skips_zeros`.
  const T* const* plus = nullptr;
  bool skips_zeros =
      false;  // a factor a(row, k) of 0 adds nothing, even where b holds NaN or infinity
};

void gemm(const Gemm<float>& product);
void gemm(const Gemm<double>& product);

// Rows of a that fill the registers together: products of a multiple of it are fastest.
constexpr std::int64_t gemm_rows = 6;

// Columns of a panel, a multiple of 4: as many as the registers take beside gemm_rows rows.
template <class T>
std::int64_t panel_columns();
template <>
std::int64_t panel_columns<float>();
template <>
std::int64_t panel_columns<double>();

// to[column · to_step + row] = x[row · step + column].
void transpose(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
               float* to, std::int64_t to_step);
void transpose(const double* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
               double* to, std::int64_t to_step);

// The transpose of x [rows][step], of which `columns` matter, as panels:
// [panel][column][panel_columns()], each panel_columns() · columns numbers. Behind the last row
// stand zeros.
void transpose_to_panels(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                         float* panels);
void transpose_to_panels(const double* x, std::int64_t step, std::int64_t rows,
                         std::int64_t columns, double* panels);
// Of what else has four bytes: panels are as wide as those of floats.
void transpose_to_panels(const std::uint32_t* x, std::int64_t step, std::int64_t rows,
                         std::int64_t columns, std::uint32_t* panels);

}  // namespace posenc::detail
