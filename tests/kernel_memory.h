// Memory for tests of kernels, in every layout a tensor may have, and the instruction set they run on.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "src/core/random.h"
#include "src/kernels/instruction_sets.h"

namespace posenc {

inline constexpr DType all_dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

// Distance from 1 to the next number, of what the dtype is computed in and stored in.
inline double step(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-52;
    case DType::f32: return 0x1p-23;
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
  }
  return 0;
}
inline double compute_step(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }

// Memory and what is viewed of it. All of it is random, and it is not aligned.
struct Memory {
  std::vector<std::uint64_t> storage;
  Tensor shape;  // data: an offset in bytes
  Tensor view() {
    Tensor view = shape;
    view.data =
        reinterpret_cast<char*>(storage.data()) + reinterpret_cast<std::intptr_t>(shape.data);
    return view;
  }
};

enum class Layout { heads_first, tokens_first, packed_qkv, reversed, every_third, channels_first };
inline constexpr Layout all_layouts[] = {Layout::heads_first, Layout::tokens_first,
                                         Layout::packed_qkv,  Layout::reversed,
                                         Layout::every_third, Layout::channels_first};

inline Memory memory(DType dtype, Layout layout, std::int64_t batch, std::int64_t heads,
                     std::int64_t seq, std::int64_t dim, unsigned seed = 1) {
  Memory made;
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t bytes = (3 * batch * heads * seq * dim + 3) * size;
  made.storage.resize(static_cast<std::size_t>(bytes / 8 + 2));
  const Tensor all = Tensor::dense(made.storage.data(), dtype,
                                   {static_cast<std::int64_t>(made.storage.size()) * 8 / size});
  detail::SplitMix64 engine(seed);
  for (std::int64_t i = 0; i < all.shape[0]; ++i) all.set(i, detail::normal(engine));
  std::int64_t first = 1;
  const auto dense = [&](std::initializer_list<std::int64_t> shape) {
    return Tensor::dense(nullptr, dtype, shape);
  };
  switch (layout) {
    case Layout::heads_first: made.shape = dense({batch, heads, seq, dim}); break;
    case Layout::tokens_first: made.shape = dense({batch, seq, heads, dim}).swapped(1, 2); break;
    case Layout::packed_qkv:
      made.shape = dense({batch, seq, 3 * heads, dim}).swapped(1, 2);
      made.shape.shape[1] = heads;
      break;
    case Layout::reversed:
      made.shape = dense({batch, seq, heads, dim}).swapped(1, 2);
      made.shape.stride[3] = -1;
      first += dim - 1;
      break;
    case Layout::every_third:
      made.shape = dense({batch, heads, seq, 3 * dim});
      made.shape.shape[3] = dim;
      made.shape.stride[3] = 3;
      break;
    case Layout::channels_first: made.shape = dense({batch, heads, dim, seq}).swapped(2, 3); break;
  }
  made.shape.data = reinterpret_cast<void*>(first * size);
  return made;
}

template <class Act>
void for_each_index(const Tensor& view, const Act& act) {
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    for (std::int64_t h = 0; h < view.shape[1]; ++h) {
      for (std::int64_t t = 0; t < view.shape[2]; ++t) {
        for (std::int64_t c = 0; c < view.shape[3]; ++c) act(b, h, t, c);
      }
    }
  }
}

inline std::vector<double> geometric(std::int64_t pairs, double theta = 10000) {
  std::vector<double> frequency;
  for (std::int64_t r = 0; r < pairs; ++r) {
    frequency.push_back(std::pow(theta, -static_cast<double>(r) / static_cast<double>(pairs)));
  }
  return frequency;
}

inline Plan rope(std::int64_t rotary_dim, Pairing pairing) {
  Plan plan;
  plan.rotate =
      Rotate{.pairing = pairing, .rotary_dim = rotary_dim, .frequency = geometric(rotary_dim / 2)};
  return plan;
}

// Kernels use one instruction set for as long as a test of this class runs.
class EveryInstructionSet : public testing::TestWithParam<detail::InstructionSet> {
 protected:
  EveryInstructionSet() { detail::use_instruction_set(GetParam().bit); }
  ~EveryInstructionSet() override { detail::use_instruction_set(0); }
};

}  // namespace posenc
