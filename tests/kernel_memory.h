// Memory for tests of kernels, in every layout a tensor may have, and the instruction set they run
// on.
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
#include "tests/guarded_memory.h"

namespace posenc {

inline constexpr DType all_dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

// Distance from 1 to the next number, of what the dtype is computed in and stored in.
inline double step(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-52;
    case DType::f32: return 0x1p-23;
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: break;  // made by who needs them
  }
  return 0;
}
inline double compute_step(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }

// Memory from a tensor's first element to its last, guarded, and what is viewed of it. All of it is
// random.
struct Memory {
  GuardedMemory storage;
  Tensor shape;            // without data
  std::size_t origin = 0;  // element [0, 0, 0, 0], in bytes
  Tensor view() const {
    Tensor view = shape;
    view.data = storage.data() + origin;
    return view;
  }
};

enum class MemoryLayout {
  heads_first,
  tokens_first,
  packed_qkv,
  reversed,
  every_third,
  channels_first
};
inline constexpr MemoryLayout all_layouts[] = {
    MemoryLayout::heads_first, MemoryLayout::tokens_first, MemoryLayout::packed_qkv,
    MemoryLayout::reversed,    MemoryLayout::every_third,  MemoryLayout::channels_first};

inline Memory memory(DType dtype, MemoryLayout layout, std::int64_t batch, std::int64_t heads,
                     std::int64_t seq, std::int64_t dim, unsigned seed = 1) {
  Memory made;
  const auto dense = [&](std::initializer_list<std::int64_t> shape) {
    return Tensor::dense(nullptr, dtype, shape);
  };
  switch (layout) {
    case MemoryLayout::heads_first: made.shape = dense({batch, heads, seq, dim}); break;
    case MemoryLayout::tokens_first:
      made.shape = dense({batch, seq, heads, dim}).swapped(1, 2);
      break;
    case MemoryLayout::packed_qkv:
      made.shape = dense({batch, seq, 3 * heads, dim}).swapped(1, 2);
      made.shape.shape[1] = heads;
      break;
    case MemoryLayout::reversed:
      made.shape = dense({batch, seq, heads, dim}).swapped(1, 2);
      made.shape.stride[3] = -1;
      break;
    case MemoryLayout::every_third:
      made.shape = dense({batch, heads, seq, 3 * dim});
      made.shape.shape[3] = dim;
      made.shape.stride[3] = 3;
      break;
    case MemoryLayout::channels_first:
      made.shape = dense({batch, heads, dim, seq}).swapped(2, 3);
      break;
  }
  std::int64_t lowest = 0, highest = -1;
  if (made.shape.size() > 0) {
    highest = made.shape.offset(batch - 1, heads - 1, seq - 1, 0);
    (made.shape.stride[3] < 0 ? lowest : highest) += (dim - 1) * made.shape.stride[3];
  }
  const std::int64_t count = highest - lowest + 1;
  // Odd seeds end at a guard and are seldom aligned, even ones begin at one and are.
  made.storage =
      GuardedMemory(static_cast<std::size_t>(count) * size_of(dtype),
                    seed % 2 == 1 ? GuardedMemory::Beside::end : GuardedMemory::Beside::start);
  made.origin = static_cast<std::size_t>(-lowest) * size_of(dtype);
  const Tensor all = Tensor::dense(made.storage.data(), dtype, {count});
  detail::SplitMix64 engine(seed);
  for (std::int64_t i = 0; i < count; ++i) all.set(i, detail::normal(engine));
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
  plan.rotate = Rotate{.slice = {.pairing = pairing, .rotary_dim = rotary_dim},
                       .frequencies = {.radians = geometric(rotary_dim / 2)}};
  return plan;
}

// Kernels use one instruction set for as long as a test of this class runs.
class EveryInstructionSet : public testing::TestWithParam<detail::InstructionSet> {
 protected:
  EveryInstructionSet() { detail::use_instruction_set(GetParam().bit); }
  ~EveryInstructionSet() override { detail::use_instruction_set(0); }
};

}  // namespace posenc
