// What is added to embeddings, the kernel's text: waves, rows of a learned table, the bare index.
// One thread owns some channels of a token, of every sequence that has it at the same position.
#pragma once

#include "backends/cuda/tokens.h"

namespace posenc::cuda {

enum class Added : std::int32_t { waves, rows, ramp };

struct SumCall {
  const void* in = nullptr;  // embeddings [batch][token][channel]; absent: the vectors alone
  void* out = nullptr;
  std::int64_t in_batch = 0, in_token = 0, in_channel = 0;  // strides in elements
  std::int64_t out_batch = 0, out_token = 0, out_channel = 0;
  Number number = Number::f32;
  Added added = Added::waves;
  bool interleaved = false;  // sines and cosines alternate
  bool wide = false;         // vectors of 16 bytes
  std::int32_t width = 0, pairs = 0;
  double scale = 1;  // of the embedding
  Tokens tokens = {};
  std::int64_t row_offset = 0, zero_row = -1;

  const Turns* turns = nullptr;  // of waves, [pair]
  const void* table = nullptr;   // of rows, [table_rows][width] dense
  Number table_number = Number::f32;
  std::int64_t table_rows = 0;
  std::int32_t channel = 0;  // of a ramp
  double ramp = 0;           // for each position
};

// A channel of a learned table's row; a row that it has not is NaN.
template <class Real>
POSENC_DEVICE Real learned(const SumCall& call, std::int64_t row, std::int32_t channel) {
  if (row < 0 || row >= call.table_rows) {
    const Real infinite = static_cast<Real>(1e30f) * static_cast<Real>(1e30f) *
                          static_cast<Real>(call.table_number == Number::f64 ? 1e300 : 1);
    return infinite - infinite;
  }
  const std::int64_t at = row * call.width + channel;
  switch (call.table_number) {
    case Number::f64: return static_cast<Real>(static_cast<const double*>(call.table)[at]);
    case Number::f32: return static_cast<const float*>(call.table)[at];
    case Number::f16: return real(static_cast<const Half*>(call.table)[at]);
    case Number::bf16: return real(static_cast<const Bfloat16*>(call.table)[at]);
  }
  return 0;
}

template <class Real>
POSENC_DEVICE CosSin<Real> wave_of(const SumCall& call, std::int64_t row, std::int32_t pair) {
  if (row == call.zero_row) return {0, 0};
  return cos_sin<Real>(phase_of(row, call.turns[pair]));
}

// One channel of the vector of a position.
template <class Real>
POSENC_DEVICE Real added_to(const SumCall& call, std::int64_t position, std::int32_t channel) {
  const std::int64_t row = position + call.row_offset;
  if (call.added == Added::rows) return learned<Real>(call, row, channel);
  if (call.added == Added::ramp)
    return channel == call.channel ? static_cast<Real>(static_cast<double>(position) * call.ramp)
                                   : 0;
  if (channel >= 2 * call.pairs) return 0;
  const std::int32_t pair = call.interleaved       ? channel / 2
                            : channel < call.pairs ? channel
                                                   : channel - call.pairs;
  const CosSin<Real> wave = wave_of<Real>(call, row, pair);
  return (call.interleaved ? channel % 2 == 0 : channel < call.pairs) ? wave.sin : wave.cos;
}

// Rows of a grid: the tokens, and the sequences where their positions differ.
POSENC_DEVICE std::int64_t rows_of(const SumCall& call) {
  return call.tokens.count * (call.tokens.shared() ? 1 : call.tokens.batch);
}
// Units of a grid: two words of waves that lie apart, else a word or a channel.
POSENC_DEVICE std::int32_t units_of(const SumCall& call) {
  const std::int32_t channels =
      call.wide && call.added == Added::waves && !call.interleaved ? call.pairs : call.width;
  return channels >> (call.wide ? word_shift(call.number) : 0);
}
// Of a row, which sequences and which token. Numbers of 32 bits, as a device divides those alone by
// an instruction or few.
struct SumRow {
  std::uint32_t first = 0, last = 0, token = 0;
};
POSENC_DEVICE SumRow sum_row(const SumCall& call, std::int64_t row) {
  const auto at = static_cast<std::uint32_t>(row),
             count = static_cast<std::uint32_t>(call.tokens.count);
  if (call.tokens.shared()) return {0, static_cast<std::uint32_t>(call.tokens.batch), at};
  return {at / count, at / count + 1, at % count};
}

// `values` are added from a channel on, in every sequence of the row.
template <class T, int count>
POSENC_DEVICE void write_sum(const SumCall& call, const SumRow& row, std::int32_t channel,
                             const typename T::Real (&values)[count]) {
  struct alignas(count * sizeof(T)) Piece {
    T at[count];
  };
  const auto scale = static_cast<typename T::Real>(call.scale);
  POSENC_ROLLED for (std::int64_t b = row.first; b < row.last; ++b) {
    Piece piece{};
    if (call.in != nullptr)
      piece = load<Piece>(static_cast<const T*>(call.in) + b * call.in_batch +
                          row.token * call.in_token + channel * call.in_channel);
    POSENC_UNROLL for (int i = 0; i < count; ++i) put(
        piece.at[i], call.in == nullptr ? values[i] : fused(real(piece.at[i]), scale, values[i]));
    store(static_cast<T*>(call.out) + b * call.out_batch + row.token * call.out_token +
              channel * call.out_channel,
          piece);
  }
}

template <class T>
POSENC_DEVICE void sum_at(const SumCall& call, std::int64_t at_row, std::int32_t unit) {
  using Real = typename T::Real;
  constexpr int n = Word<T>::size;
  if (at_row >= rows_of(call)) return;
  const SumRow row = sum_row(call, at_row);
  const std::int64_t position = position_of(call.tokens, 0, at_row, row.token);
  if (!call.wide) {
    const Real one[1] = {added_to<Real>(call, position, unit)};
    write_sum<T, 1>(call, row, unit, one);
    return;
  }
  Real values[n];
  if (call.added != Added::waves) {
    POSENC_UNROLL for (int i = 0; i < n; ++i) values[i] =
        added_to<Real>(call, position, unit * n + i);
    write_sum<T, n>(call, row, unit * n, values);
    return;
  }
  const std::int64_t at = position + call.row_offset;
  if (call.interleaved) {
    POSENC_UNROLL for (int i = 0; i < n / 2; ++i) {
      const CosSin<Real> wave = wave_of<Real>(call, at, unit * (n / 2) + i);
      values[2 * i] = wave.sin;
      values[2 * i + 1] = wave.cos;
    }
    write_sum<T, n>(call, row, unit * n, values);
    return;
  }
  Real cosines[n];
  POSENC_UNROLL for (int i = 0; i < n; ++i) {
    const CosSin<Real> wave = wave_of<Real>(call, at, unit * n + i);
    values[i] = wave.sin;
    cosines[i] = wave.cos;
  }
  write_sum<T, n>(call, row, unit * n, values);
  write_sum<T, n>(call, row, call.pairs + unit * n, cosines);
}

}  // namespace posenc::cuda
