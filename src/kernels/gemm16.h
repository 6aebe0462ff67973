// The matrix product of bfloat16 numbers, summed in float, on processors that have instructions for
// it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace posenc::detail {

// Two bfloat16 numbers that meet two others at a time, the earlier in the lower half. In memory
// they are an array of both.
using Pair16 = std::uint32_t;

// Ways to multiply pairs. Their sums differ in order, so that the last bits do.
enum class Products16 : std::uint8_t {
  none,   // plain loops, which are of no use but to tests
  pairs,  // AVX512-BF16: a pair of each lane
  tiles,  // AMX: 16 × 32 by 32 × 16 numbers
  quads,  // NEON's bfmmla: 2 × 4 by 4 × 2
};
std::string_view name(Products16 products);

// Those that this machine has, the best first; never empty, `none` the last.
std::vector<Products16> products16();
// What gemm16() uses: the best, or what use_products16() has chosen, for tests and measurements,
// while no kernel is at work.
Products16 chosen_products16();
void use_products16(Products16 products);

// Products read and write whole tiles: rows are a multiple of gemm16_rows in memory, whatever those
// behind the last hold, and the depth is one of gemm16_pairs.
constexpr std::int64_t gemm16_rows = 16, gemm16_pairs = 16;
constexpr std::int64_t padded_pairs(std::int64_t numbers) {
  return (numbers + 2 * gemm16_pairs - 1) / (2 * gemm16_pairs) * gemm16_pairs;
}

// c[row][column] = Σ_k a(row, k) · b(k, column). Products are exact in float. A sum's order depends
// on the depth alone, and pairs of zeros, gemm16_pairs of them from a multiple of it on, change no
// sum. Numbers below the least normal one count as zeros. Steps are in numbers of c and in pairs of
// a and b.
struct Gemm16 {
  float* c = nullptr;
  std::int64_t c_step = 0, rows = 0, columns = 0;  // columns: a multiple of 16
  const Pair16* a = nullptr;                       // [row][pair]
  std::int64_t a_step = 0;
  const Pair16* b = nullptr;  // [pair][column], or of panels, each of panel_columns of the columns:
  std::int64_t b_step = 0;
  std::int64_t depth = 0;          // in pairs
  std::int64_t panel_columns = 0;  // a multiple of 16; 0: all lie in one
  std::int64_t panel_step = 0;     // from panel to panel
  bool adds = false;               // to what c holds
};
void gemm16(const Gemm16& product);

// --- pairs of floats, each rounded to nearest, ties to even --------------------------------------

// Of neighbours in a row: x [rows][step], read up to padded(columns), to [rows][to_step] pairs,
// zeros behind the columns.
void pair_columns(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                  Pair16* to, std::int64_t to_step);

// Of neighbours in a column: to [rows/2][to_step]; behind the last row stand zeros, up to
// `padded_rows`, a multiple of 2. x is read, and `to` written, up to padded(columns).
void pair_rows(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
               std::int64_t padded_rows, Pair16* to, std::int64_t to_step);

}  // namespace posenc::detail
