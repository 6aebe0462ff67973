// Every kernel on every instruction set of this machine against the plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "src/kernels/instruction_sets.h"
#include "src/kernels/reference.h"

namespace posenc {
namespace {

namespace reference = detail::reference;
using detail::Action;

constexpr DType all_dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

// Distance from 1 to the next number, of what the dtype is computed in and stored in.
double step(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-52;
    case DType::f32: return 0x1p-23;
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
  }
  return 0;
}
double compute_step(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }

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
constexpr Layout all_layouts[] = {Layout::heads_first, Layout::tokens_first,
                                  Layout::packed_qkv,  Layout::reversed,
                                  Layout::every_third, Layout::channels_first};

Memory memory(DType dtype, Layout layout, std::int64_t batch, std::int64_t heads, std::int64_t seq,
              std::int64_t dim, unsigned seed = 1) {
  Memory made;
  made.storage.resize(static_cast<std::size_t>(3 * batch * heads * seq * dim + 3) + 1);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const Tensor all = Tensor::dense(made.storage.data(), dtype,
                                   {static_cast<std::int64_t>(made.storage.size()) * 8 / size});
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < all.shape[0]; ++i) all.set(i, normal(engine));
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

std::vector<double> geometric(std::int64_t pairs, double theta = 10000) {
  std::vector<double> frequency;
  for (std::int64_t r = 0; r < pairs; ++r) {
    frequency.push_back(std::pow(theta, -static_cast<double>(r) / static_cast<double>(pairs)));
  }
  return frequency;
}

Plan rope(std::int64_t rotary_dim, Pairing pairing) {
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

INSTANTIATE_TEST_SUITE_P(Sets, EveryInstructionSet, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

// Rotates a view in place, and a copy of it by the reference in double, and compares.
// A float result is rounded three times more than the truth: cos and sin, two products and a sum.
void expect_rotation(const Plan& plan, Memory x, const Positions& positions, Side side,
                     Action action, bool in_place, Layout out_layout, const std::string& what) {
  const Tensor view = x.view();
  std::vector<double> exact(static_cast<std::size_t>(view.size()));
  const Tensor truth =
      Tensor::dense(exact.data(), {view.shape[0], view.shape[1], view.shape[2], view.shape[3]});
  std::vector<double> before;
  double largest = 0;
  for_each_index(view, [&](auto b, auto h, auto t, auto c) {
    const double value = view.get(view.offset(b, h, t, c));
    truth.set(truth.offset(b, h, t, c), value);
    before.push_back(value);
    largest = std::max(largest, std::abs(value));
  });
  ASSERT_TRUE(reference::rotate(plan, truth, positions, side, truth, action)) << what;
  Memory y = in_place ? Memory{}
                      : memory(view.dtype, out_layout, view.shape[0], view.shape[1], view.shape[2],
                               view.shape[3], 2);
  const std::vector<std::uint64_t> untouched = in_place ? x.storage : y.storage;
  const Tensor out = in_place ? view : y.view();
  const auto verb =
      action == Action::forward
          ? static_cast<Expected<void> (*)(const Plan&, const Tensor&, const Positions&, Side,
                                           const Tensor&, Threads)>(rotate)
      : action == Action::transpose ? rotate_transpose
                                    : rotate_inverse;
  const auto done = verb(plan, view, positions, side, out, {});
  ASSERT_TRUE(done) << what << ": " << done.error().message();

  const std::int64_t first = plan.rotate->first_dim, last = first + plan.rotate->rotary_dim;
  std::size_t i = 0;
  double worst = 0, where = 0;
  for_each_index(out, [&](auto b, auto h, auto t, auto c) {
    const double wanted = truth.get(truth.offset(b, h, t, c)),
                 got = out.get(out.offset(b, h, t, c));
    if (c < first || c >= last) {
      EXPECT_EQ(got, before[i]) << what << " untouched channel " << c;
    } else {
      // xPos multiplies; elsewhere no result is larger than the two inputs of its pair together.
      const double magnitude = std::max(largest, std::abs(wanted));
      const double allowed = magnitude * 4 * compute_step(out.dtype) +
                             std::abs(wanted) * step(out.dtype) / 2 +
                             (out.dtype == DType::f16 ? 0x1p-25 : 0);
      const double error = std::abs(got - wanted) / allowed;
      if (!(error <= worst)) worst = error, where = static_cast<double>(c);
    }
    ++i;
  });
  EXPECT_LE(worst, 1) << what << " at channel " << where;

  // Nothing outside the view has changed.
  Memory restored = in_place ? x : y, original = restored;
  original.storage = untouched;
  for_each_index(out, [&](auto b, auto h, auto t, auto c) {
    const std::int64_t at = out.offset(b, h, t, c);
    detail::copy(original.view(), at, restored.view(), at);
  });
  EXPECT_EQ(restored.storage, untouched) << what << " wrote outside";
}

std::string text(Pairing pairing, DType dtype, std::int64_t dim) {
  return std::string(name(pairing)) + " " + std::string(name(dtype)) + " dim " +
         std::to_string(dim);
}

constexpr Pairing both_pairings[] = {Pairing::halves, Pairing::interleaved};

TEST_P(EveryInstructionSet, RotatesEveryDtypeAndOddSizeAsTheReferenceDoes) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const std::int64_t dim :
           {2, 4, 6, 10, 14, 16, 18, 30, 32, 34, 62, 64, 66, 80, 128, 130}) {
        expect_rotation(rope(dim, pairing), memory(dtype, Layout::tokens_first, 1, 2, 3, dim),
                        Positions::range(61, 3), Side::query, Action::forward, true,
                        Layout::tokens_first, text(pairing, dtype, dim));
      }
    }
  }
}

TEST_P(EveryInstructionSet, RotatesEveryLayoutInPlace) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const Layout layout : all_layouts) {
        expect_rotation(
            rope(20, pairing), memory(dtype, layout, 2, 3, 37, 21), Positions::range(1000, 37),
            Side::query, Action::forward, true, layout,
            text(pairing, dtype, 21) + " layout " + std::to_string(static_cast<int>(layout)));
      }
    }
  }
}

TEST_P(EveryInstructionSet, RotatesFromEveryLayoutIntoEveryOther) {
  for (const DType dtype : all_dtypes) {
    for (const Layout from : all_layouts) {
      for (const Layout to : all_layouts) {
        expect_rotation(rope(18, Pairing::halves), memory(dtype, from, 1, 2, 5, 20),
                        Positions::range(7, 5), Side::query, Action::forward, false, to,
                        text(Pairing::halves, dtype, 20) + " layouts " +
                            std::to_string(static_cast<int>(from)) + " to " +
                            std::to_string(static_cast<int>(to)));
      }
    }
  }
}

TEST_P(EveryInstructionSet, RotatesASliceAndLeavesTheOtherChannels) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const bool in_place : {true, false}) {
        Plan plan = rope(34, pairing);
        plan.rotate->first_dim = 5;
        expect_rotation(plan, memory(dtype, Layout::heads_first, 2, 2, 4, 43),
                        Positions::range(99, 4), Side::query, Action::forward, in_place,
                        Layout::tokens_first, text(pairing, dtype, 43));
      }
    }
  }
}

TEST_P(EveryInstructionSet, RotatesBlocksPairedByThemselves) {
  for (const Pairing pairing : both_pairings) {
    for (const std::int64_t blocks : {2, 3, 6}) {
      Plan plan = rope(72, pairing);
      plan.rotate->blocks = blocks;
      expect_rotation(plan, memory(DType::f32, Layout::tokens_first, 1, 2, 4, 72),
                      Positions::range(50, 4), Side::query, Action::forward, true,
                      Layout::tokens_first, text(pairing, DType::f32, 72));
    }
  }
}

// A plan with everything a rotation can have but heads and axes of their own.
Plan rich(Pairing pairing) {
  Plan plan = rope(22, pairing);
  plan.rotate->first_dim = 1;
  plan.rotate->amplitude = 1.25;
  plan.rotate->values = true;
  Growth growth{.scale = 64, .centre = 20};
  for (std::int64_t r = 0; r < 11; ++r)
    growth.factor.push_back(0.3 + 0.05 * static_cast<double>(r));
  plan.rotate->growth = growth;
  return plan;
}

TEST_P(EveryInstructionSet, ForwardTransposeAndInverseOfEverySideGrowAsTheReferenceDoes) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const Side side : {Side::query, Side::key, Side::value}) {
        for (const Action action : {Action::forward, Action::transpose, Action::inverse}) {
          expect_rotation(rich(pairing), memory(dtype, Layout::tokens_first, 1, 2, 9, 24),
                          Positions::range(60, 9), side, action, true, Layout::tokens_first,
                          text(pairing, dtype, 24) + " side " +
                              std::to_string(static_cast<int>(side)) + " action " +
                              std::to_string(static_cast<int>(action)));
        }
      }
    }
  }
}

TEST_P(EveryInstructionSet, HeadsMayHaveFrequenciesOfTheirOwnOnSeveralAxes) {
  std::mt19937 engine(3);
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      Plan plan;
      plan.rotate = Rotate{.pairing = pairing, .rotary_dim = 14, .heads = 3, .axes = 2};
      std::uniform_real_distribution<double> frequency(-1, 1);
      for (int i = 0; i < 3 * 2 * 7; ++i) plan.rotate->frequency.push_back(frequency(engine));
      std::vector<std::int64_t> ids;
      for (int i = 0; i < 2 * 2 * 19; ++i) ids.push_back(engine() % 5000);
      expect_rotation(plan, memory(dtype, Layout::heads_first, 2, 3, 19, 14),
                      *Positions::ids(ids, 2, 2), Side::query, Action::forward, true,
                      Layout::heads_first, text(pairing, dtype, 14));
    }
  }
}

TEST_P(EveryInstructionSet, TextStandsAtOnePositionOnEveryAxis) {
  Plan plan = rope(12, Pairing::halves);
  plan.rotate->axes = 3;
  plan.rotate->frequency.assign(18, 0);
  for (std::size_t r = 0; r < 6; ++r) plan.rotate->frequency[r % 3 * 6 + r] = geometric(6)[r];
  expect_rotation(plan, memory(DType::f32, Layout::tokens_first, 2, 2, 70, 12),
                  Positions::range(0, 70), Side::query, Action::forward, true, Layout::tokens_first,
                  "text");
}

TEST_P(EveryInstructionSet, RotatesIdsOfEverySequenceOfABatch) {
  std::mt19937_64 engine(4);
  for (const std::int64_t seq : {1, 3, 40}) {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < 5 * seq; ++i)
      ids.push_back(static_cast<std::int64_t>(engine() >> 40));
    for (const Layout layout : {Layout::heads_first, Layout::tokens_first}) {
      expect_rotation(rope(64, Pairing::halves), memory(DType::f64, layout, 5, 3, seq, 64),
                      *Positions::ids(ids, 1, 5), Side::query, Action::forward, true, layout,
                      "seq " + std::to_string(seq));
    }
  }
}

TEST_P(EveryInstructionSet, RotatesNegativeAndVeryLargePositions) {
  for (const std::int64_t first : {-200L, 99999990L, 1L << 40, (1L << 53) - 100}) {
    expect_rotation(rope(16, Pairing::halves),
                    memory(DType::f64, Layout::tokens_first, 1, 1, 70, 16),
                    Positions::range(first, 70), Side::query, Action::forward, true,
                    Layout::tokens_first, "from " + std::to_string(first));
  }
}

TEST_P(EveryInstructionSet, RotatesNothing) {
  for (const auto& [batch, heads, seq] : {std::array{0, 2, 3}, {2, 0, 3}, {2, 3, 0}}) {
    expect_rotation(rope(8, Pairing::halves),
                    memory(DType::f32, Layout::tokens_first, batch, heads, seq, 8),
                    Positions::range(0, seq), Side::query, Action::forward, true,
                    Layout::tokens_first, "nothing");
  }
}

TEST_P(EveryInstructionSet, PlanWithoutARotationCopiesBitForBit) {
  for (const Layout to : all_layouts) {
    Memory from = memory(DType::f16, Layout::every_third, 2, 3, 4, 5);
    Memory into = memory(DType::f16, to, 2, 3, 4, 5, 2);
    const Tensor x = from.view(), y = into.view();
    ASSERT_TRUE(rotate(Plan{}, x, Positions::range(0, 4), Side::query, y));
    for_each_index(y, [&](auto b, auto h, auto t, auto c) {
      EXPECT_EQ(y.get(y.offset(b, h, t, c)), x.get(x.offset(b, h, t, c)));
    });
  }
}

// --- bits that must not depend on how a call is made --------------------------------------------

std::vector<std::uint64_t> rotated_bits(const Plan& plan, Memory x, const Positions& positions,
                                        Threads threads = {}) {
  const Tensor view = x.view();
  EXPECT_TRUE(rotate(plan, view, positions, Side::query, view, threads));
  return std::move(x.storage);
}

TEST_P(EveryInstructionSet, CutsOfARangeGiveTheSameBits) {
  for (const Plan& plan : {rope(32, Pairing::halves), rich(Pairing::interleaved)}) {
    const Memory x = memory(DType::f32, Layout::tokens_first, 1, 2, 200, 33);
    const auto whole = rotated_bits(plan, x, Positions::range(30, 200));
    std::mt19937 engine(5);
    Memory parts = x;
    for (std::int64_t t = 0; t < 200;) {
      const std::int64_t count = std::min<std::int64_t>(200 - t, 1 + engine() % 20);
      Tensor part = parts.view();
      part.data = static_cast<float*>(part.data) + part.offset(0, 0, t);
      part.shape[2] = count;
      ASSERT_TRUE(rotate(plan, part, Positions::range(30 + t, count), Side::query, part));
      t += count;
    }
    EXPECT_EQ(parts.storage, whole);
  }
}

TEST_P(EveryInstructionSet, IdsGiveTheSameBitsAsARange) {
  std::vector<std::int64_t> ids(150);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = 1000000 + static_cast<std::int64_t>(i);
  for (const DType dtype : all_dtypes) {
    const Memory x = memory(dtype, Layout::heads_first, 1, 2, 150, 48);
    const Plan plan = rope(48, Pairing::halves);
    EXPECT_EQ(rotated_bits(plan, x, Positions::range(1000000, 150)),
              rotated_bits(plan, x, *Positions::ids(ids)));
  }
}

}  // namespace
}  // namespace posenc
