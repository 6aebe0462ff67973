// The pairs of one row of channels times their matrices, where the channels are neighbours: the
// loop that a build without Highway has instead of its kernels. It computes what the reference
// does, to the bit, and compilers make vectors of it (WebAssembly's have two doubles).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posenc/plan.h"
#include "posenc/tensor.h"

namespace posenc::detail {

// A pair's 2 x 2 matrix [[cosine, −sine], [sine, cosine]], magnitude included; the second row may
// be of another angle.
struct PairMatrix {
  double cosine = 1, sine = 0, second_cosine = cosine, second_sine = sine;
};

// Those of a row's pairs, each member by itself.
struct PairMatrices {
  explicit PairMatrices(std::int64_t pairs)
      : cosine(static_cast<std::size_t>(pairs)),
        sine(cosine),
        second_cosine(cosine),
        second_sine(cosine) {}
  void set(std::span<const PairMatrix> matrices);

  std::vector<double> cosine, sine, second_cosine, second_sine;
};

// Whether multiply_pairs() takes rows of these: doubles or floats that are neighbours, with room
// for a pair's product where the pair lies.
bool multiplies_pairs(const Rotate& rotate, const Tensor& x, const Tensor& out);

// Rotates the row of x that begins at the element `from` into that of out at `to`, and copies the
// channels beside the slice. Both rows are the same memory, or share none.
void multiply_pairs(const Rotate& rotate, const PairMatrices& by, const Tensor& x,
                    std::int64_t from, const Tensor& out, std::int64_t to);

}  // namespace posenc::detail
