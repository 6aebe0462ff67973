// A text that every rank of a test knows whole, and the part of it that the rank holds: for tests
// under mpirun.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "posenc/distributed.h"
#include "tests/random.h"

namespace posenc {

inline int test_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
inline int test_ranks() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// The largest of all ranks' numbers, so that a test fails on all of them or on none.
inline double largest_of_ranks(double own) {
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; std::this_thread::yield())  // MPICH would keep the core
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return own;
}

// Numbers [batch][heads][tokens][width] of a dtype.
class Numbers {
 public:
  Numbers() = default;
  Numbers(DType dtype, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
          std::int64_t width, unsigned seed = 0)
      : shape_{batch, heads, tokens, width},
        dtype_(dtype),
        bytes_(static_cast<std::size_t>(batch * heads * tokens * width) * size_of(dtype) + 64) {
    if (seed == 0) return;
    const std::vector<double> values = random(batch * heads * tokens * width, seed);
    for (std::size_t n = 0; n < values.size(); ++n)
      view().set(static_cast<std::int64_t>(n), values[n]);
  }
  Tensor view() const {
    return Tensor::dense(const_cast<std::byte*>(bytes_.data()), dtype_,
                         {shape_[0], shape_[1], shape_[2], shape_[3]});
  }
  Tensor of_rows() const {  // [batch][heads][tokens]
    Tensor rows = view();
    rows.rank = 3;
    return rows;
  }
  Numbers of(const std::vector<std::int64_t>& tokens) const {
    Numbers some(dtype_, shape_[0], shape_[1], std::ssize(tokens), shape_[3]);
    each(
        tokens, [&](std::int64_t from, std::int64_t to) { some.view().set(to, view().get(from)); },
        some.view());
    return some;
  }
  // The largest difference of these, tokens of `whole`, relative to the largest number of it.
  double error(const Numbers& whole, const std::vector<std::int64_t>& tokens) const {
    double most = 0, scale = 1e-30;
    for (std::int64_t n = 0; n < whole.view().size(); ++n)
      scale = std::max(scale, std::abs(whole.view().get(n)));
    whole.each(
        tokens,
        [&](std::int64_t from, std::int64_t to) {
          const double off = std::abs(whole.view().get(from) - view().get(to));
          most = off > most || std::isnan(off) ? off : most;
        },
        view());
    return most / scale;
  }
  bool same_bits(const Numbers& whole, const std::vector<std::int64_t>& tokens) const {
    const Numbers expected = whole.of(tokens);
    return std::memcmp(bytes_.data(), expected.bytes_.data(), bytes_.size() - 64) == 0;
  }

 private:
  template <class Act>
  void each(const std::vector<std::int64_t>& tokens, const Act& act, const Tensor& some) const {
    for (std::int64_t b = 0; b < shape_[0]; ++b)
      for (std::int64_t h = 0; h < shape_[1]; ++h)
        for (std::int64_t t = 0; t < std::ssize(tokens); ++t)
          for (std::int64_t c = 0; c < shape_[3]; ++c)
            act(view().offset(b, h, tokens[static_cast<std::size_t>(t)], c),
                some.offset(b, h, t, c));
  }

  std::array<std::int64_t, 4> shape_{};
  DType dtype_ = DType::f32;
  std::vector<std::byte> bytes_;
};

// What is computed, whole; and the part of it that a rank has.
struct WholeText {
  std::int64_t batch = 2, heads = 8, kv_heads = 4, head_dim = 16, value_dim = 16;
  DType dtype = DType::f32;
  Positions positions = Positions::range(0, 41);
  Plan plan = {};
  Mask mask = {};
  std::vector<std::uint8_t> keep = {};  // [batch][token]
  std::vector<std::int32_t> blocks = {};
  std::vector<float> sinks = {};  // [heads]
  Numbers q = {}, k = {}, v = {}, out = {}, log_sums = {}, out_gradient = {};

  std::int64_t tokens() const { return positions.size(); }
  WholeText& filled() {
    q = Numbers(dtype, batch, heads, tokens(), head_dim, 1);
    k = Numbers(dtype, batch, kv_heads, tokens(), head_dim, 2);
    v = Numbers(dtype, batch, kv_heads, tokens(), value_dim, 3);
    out = Numbers(dtype, batch, heads, tokens(), value_dim);
    out_gradient = Numbers(dtype, batch, heads, tokens(), value_dim, 4);
    log_sums = Numbers(DType::f64, batch, heads, tokens(), 1);
    return *this;
  }
  AttentionInputs inputs() {
    Mask with = mask;
    if (!keep.empty()) with.keep = keep.data();
    if (!blocks.empty()) with.blocks = blocks.data();
    AttentionInputs in{.q = q.view(),
                       .k = k.view(),
                       .v = v.view(),
                       .queries = positions,
                       .keys = positions,
                       .mask = with};
    if (!sinks.empty()) in.sink_logits = Tensor::dense(sinks.data(), {heads});
    return in;
  }
  WholeText part(const std::vector<std::int64_t>& of) const {
    WholeText some = *this;
    some.q = q.of(of), some.k = k.of(of), some.v = v.of(of), some.out = out.of(of);
    some.out_gradient = out_gradient.of(of), some.log_sums = log_sums.of(of);
    some.positions = *positions.select(of);
    some.keep.clear(), some.blocks.clear();
    for (std::int64_t b = 0; b < batch; ++b)
      for (const std::int64_t t : of) {
        const auto at = static_cast<std::size_t>(b * tokens() + t);
        if (!keep.empty()) some.keep.push_back(keep[at]);
        if (!blocks.empty()) some.blocks.push_back(blocks[at]);
      }
    if (of.empty() && !keep.empty()) some.keep.resize(1);
    if (of.empty() && !blocks.empty()) some.blocks.resize(1);
    return some;
  }
};

}  // namespace posenc
