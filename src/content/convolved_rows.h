// What convolutions over neighbours and their gradients share: the checked call, rows with zeros
// around them, and the sums b + Σ W x of a sequence.
//
// Where channels come in groups, a group is copied with zeros around it, so that the taps of a token
// lie side by side in memory and one matrix product makes all tokens of a row. Where each channel
// stands alone: convolved_alone.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/convolution.h"
#include "src/kernels/gemm.h"
#include "src/kernels/rows.h"
#include "src/kernels/scratch.h"
#include "src/kernels/threads.h"

namespace posenc::detail {

constexpr std::string_view convolves = "convolve_positions";  // whose errors these are

// Sizes, and views with all axes.
struct ConvolutionJob {
  std::int64_t batch = 0, tokens = 0, width = 0, kept = 0;
  std::int64_t groups = 0, in = 0;     // channels of a group
  std::int64_t rows = 0, columns = 0;  // of the grid
  std::int64_t tall = 1, wide = 1;     // taps
  AfterConvolution after = AfterConvolution::none;
  bool adds = true;
  const std::uint8_t* keep = nullptr;
  Tensor x = {};       // [batch, 1, token, channel]
  Tensor weight = {};  // [to, from, tall, wide]
  Tensor bias = {};
  int threads = 1;

  bool alone() const { return in == 1; }
  std::int64_t taps() const { return tall * wide; }
  std::int64_t up() const { return tall / 2; }  // taps in front of the token
  std::int64_t left() const { return wide / 2; }
  std::int64_t patches() const { return rows * columns; }
  std::int64_t step() const { return padded(width); }  // between rows of sums
  bool hides(std::int64_t b, std::int64_t t) const {
    return keep != nullptr && keep[b * tokens + t] == 0;
  }
  // One of the batch.
  ConvolutionJob sequence(std::int64_t b) const {
    ConvolutionJob one = *this;
    one.batch = 1;
    one.x.data =
        static_cast<std::byte*>(x.data) + x.offset(b) * static_cast<std::int64_t>(size_of(x.dtype));
    if (keep != nullptr) one.keep = keep + b * tokens;
    return one;
  }
  double w(std::int64_t to, std::int64_t from, std::int64_t tap) const {
    return weight.get(weight.offset(to, from, tap / wide, tap % wide));
  }
  double b(std::int64_t channel) const { return bias ? bias.get(bias.offset(channel)) : 0; }
};

Expected<ConvolutionJob> convolution_job(const PositionConvolution& of,
                                         const ConvolvedTokens& given);

// [batch, tokens, width] as [batch, 1, tokens, width], whose rows are tokens.
Tensor tokens_as_rows(const Tensor& x);

// 1/√(variance + ε) of a row, which becomes one of mean 0 and variance 1.
template <class C>
C normalise(C* row, std::int64_t width);

// --- rows with zeros around them -----------------------------------------------------------------

// A sequence's grid of rows `step` numbers wide, framed by tall − 1 rows and wide − 1 columns of
// zeros in all, `up` and `left` of them before it. `flipped`: for what goes back.
template <class C>
struct Framed {
  std::int64_t rows, columns, tall, wide, up, left, step;
  C* numbers;

  Framed(const ConvolutionJob& job, std::int64_t channels, bool flipped, Scratch& scratch)
      : rows(job.rows),
        columns(job.columns),
        tall(job.tall),
        wide(job.wide),
        up(flipped ? job.tall - 1 - job.up() : job.up()),
        left(flipped ? job.wide - 1 - job.left() : job.left()),
        step(padded(channels)),
        numbers(scratch.take_zeros<C>((rows + tall - 1) * across() * step)) {}
  std::int64_t across() const { return columns + wide - 1; }
  // A place of the frame, whose own patches begin at (up, left).
  C* at(std::int64_t y, std::int64_t x) { return numbers + (y * across() + x) * step; }
  C* patch(std::int64_t y, std::int64_t x) { return at(y + up, x + left); }
};

// Channels [first, first + count) of a sequence; padding is zeros. What stands around them is never
// written.
template <class C>
void fill(const ConvolutionJob& job, std::int64_t b, std::int64_t first, std::int64_t count,
          Framed<C>& to) {
  Tensor part = job.x;
  part.shape[3] = count;
  for (std::int64_t y = 0; y < job.rows; ++y) {
    const std::int64_t t = job.kept + y * job.columns;
    load_rows(part, job.x.offset(b, 0, t, first), job.columns, to.patch(y, 0), to.step);
    for (std::int64_t i = 0; job.keep != nullptr && i < job.columns; ++i)
      if (job.hides(b, t + i)) std::fill_n(to.patch(y, i), to.step, C{0});
  }
}

// --- weights and sums ----------------------------------------------------------------------------

// As the loops read them. Of channels alone: [tap][step]. Of groups, one behind the other:
// [tap][from][to], both padded. `flipped`, for what goes back: taps reversed, and the parts of
// `from` and `to` exchanged.
template <class C>
std::vector<C> packed_weights(const ConvolutionJob& job, bool flipped) {
  const std::int64_t step = padded(job.in), taps = job.taps();
  const auto tap_of = [&](std::int64_t tap) { return flipped ? taps - 1 - tap : tap; };
  if (job.alone()) {
    std::vector<C> all(static_cast<std::size_t>(taps * job.step()));
    for (std::int64_t c = 0; c < job.width; ++c)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        all[static_cast<std::size_t>(tap * job.step() + c)] =
            static_cast<C>(job.w(c, 0, tap_of(tap)));
    return all;
  }
  const std::int64_t size = taps * step * step;
  std::vector<C> all(static_cast<std::size_t>(job.groups * size));
  share_out(job.groups, job.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group)
      for (std::int64_t a = 0; a < job.in; ++a)
        for (std::int64_t b = 0; b < job.in; ++b)
          for (std::int64_t tap = 0; tap < taps; ++tap)
            // Stored as [to][from]: neighbours in memory are taps.
            all[static_cast<std::size_t>(group * size + tap * step * step +
                                         (flipped ? a * step + b : b * step + a))] =
                static_cast<C>(job.w(group * job.in + a, b, tap_of(tap)));
  });
  return all;
}

// Σ W x of a group's rows of the frame; the sums, [row][column][sum_step], replace what is there.
template <class C>
void multiply_group(Framed<C>& in, const C* weights, std::int64_t channels, C* sum,
                    std::int64_t sum_step) {
  for (std::int64_t y = 0; y < in.rows; ++y)
    for (std::int64_t down = 0; down < in.tall; ++down)
      gemm(Gemm<C>{.c = sum + y * in.columns * sum_step,
                   .c_step = sum_step,
                   .rows = in.columns,
                   .columns = channels,
                   .a = in.at(y + down, 0),
                   .a_row = in.step,
                   .a_step = 1,
                   .b = weights + down * in.wide * in.step * in.step,
                   .b_step = in.step,
                   .depth = in.wide * in.step,
                   .adds = down > 0});
}

// [step], zeros where there is none.
template <class C>
std::vector<C> bias_row(const ConvolutionJob& job) {
  std::vector<C> row(static_cast<std::size_t>(job.step()));
  for (std::int64_t c = 0; c < job.width; ++c)
    row[static_cast<std::size_t>(c)] = static_cast<C>(job.b(c));
  return row;
}

// b + Σ W x of a sequence whose channels come in groups, [patch][step].
template <class C>
std::vector<C> sums_of_groups(const ConvolutionJob& job, std::int64_t b,
                              const std::vector<C>& weights, const std::vector<C>& bias) {
  const std::int64_t step = job.step();
  std::vector<C> sums(static_cast<std::size_t>(job.patches() * step));
  const auto row = [&](std::int64_t t) { return sums.data() + t * step; };
  const std::int64_t size = std::ssize(weights) / job.groups;
  share_out(job.groups, job.threads, [&](std::int64_t first, std::int64_t last) {
    Scratch scratch;
    Framed<C> in(job, job.in, false, scratch);
    for (std::int64_t group = first; group < last; ++group) {
      fill(job, b, group * job.in, job.in, in);
      multiply_group(in, weights.data() + group * size, job.in, sums.data() + group * job.in, step);
    }
  });
  if (job.bias)
    for (std::int64_t t = 0; t < job.patches(); ++t)
      for (std::int64_t c = 0; c < job.width; ++c) row(t)[c] += bias[static_cast<std::size_t>(c)];
  return sums;
}

template <class C>
void copy_kept(const ConvolutionJob& job, std::int64_t b, const Tensor& from, const Tensor& to) {
  std::vector<C> row(static_cast<std::size_t>(job.step()));
  for (std::int64_t t = 0; t < job.kept; ++t) {
    load_rows(from, from.offset(b, 0, t), 1, row.data(), std::ssize(row));
    store_rows(row.data(), std::ssize(row), 1, C{1}, to, to.offset(b, 0, t));
  }
}

}  // namespace posenc::detail
