// What attention that streams over its keys spends its time in, by vectors: a block of keys against a
// few queries. float and double; nothing here knows a scheme.
#pragma once

#include <cstdint>

namespace posenc::detail {

constexpr std::int64_t block_keys = 64;  // a word of a mask
constexpr std::int64_t row_lanes = 16;   // rows of head_dim are padded with zeros to a multiple

// scores[row][key] = q[row]·k[key], q [rows][dim] and keys turned over, kt [dim][block_keys].
void products(const float* q, const float* kt, std::int64_t rows, std::int64_t dim, float* scores);
void products(const double* q, const double* kt, std::int64_t rows, std::int64_t dim,
              double* scores);

// out[row] += Σ_key weights[row][key] v[key], v [block_keys][dim], out [rows][dim].
void accumulate(const float* weights, const float* v, std::int64_t rows, std::int64_t dim,
                float* out);
void accumulate(const double* weights, const double* v, std::int64_t rows, std::int64_t dim,
                double* out);

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
