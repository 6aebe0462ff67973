// Rotations on every instruction set of this machine against the plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "src/kernels/reference.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {

namespace reference = detail::reference;
using detail::Action;

class RotateKernel : public EveryInstructionSet {};

INSTANTIATE_TEST_SUITE_P(Sets, RotateKernel, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

// Rotates a view in place, and a copy of it by the reference in double, and compares.
// A float result is rounded three times more than the truth: cos and sin, two products and a sum.
void expect_rotation(const Plan& plan, Memory x, const Positions& positions, Side side,
                     Action action, bool in_place, MemoryLayout out_layout,
                     const std::string& what) {
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
  const GuardedMemory untouched = in_place ? x.storage : y.storage;
  const Tensor out = in_place ? view : y.view();
  const auto verb =
      action == Action::forward
          ? static_cast<Expected<void> (*)(const Plan&, const Tensor&, const Positions&, Side,
                                           const Tensor&, Threads)>(rotate)
      : action == Action::transpose ? rotate_transpose
                                    : rotate_inverse;
  const auto done = verb(plan, view, positions, side, out, {});
  ASSERT_TRUE(done) << what << ": " << done.error().message();

  const std::int64_t first = plan.rotate->slice.first_dim,
                     last = first + plan.rotate->slice.rotary_dim;
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
  EXPECT_TRUE(restored.storage == untouched) << what << " wrote outside";
}

std::string text(Pairing pairing, DType dtype, std::int64_t dim) {
  return std::string(name(pairing)) + " " + std::string(name(dtype)) + " dim " +
         std::to_string(dim);
}

constexpr Pairing both_pairings[] = {Pairing::halves, Pairing::interleaved};

TEST_P(RotateKernel, RotatesEveryDtypeAndOddSizeAsTheReferenceDoes) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const std::int64_t dim :
           {2, 4, 6, 10, 14, 16, 18, 30, 32, 34, 62, 64, 66, 80, 128, 130}) {
        expect_rotation(rope(dim, pairing), memory(dtype, MemoryLayout::tokens_first, 1, 2, 3, dim),
                        Positions::range(61, 3), Side::query, Action::forward, true,
                        MemoryLayout::tokens_first, text(pairing, dtype, dim));
      }
    }
  }
}

TEST_P(RotateKernel, RotatesEveryLayoutInPlace) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const MemoryLayout layout : all_layouts) {
        expect_rotation(
            rope(20, pairing), memory(dtype, layout, 2, 3, 37, 21), Positions::range(1000, 37),
            Side::query, Action::forward, true, layout,
            text(pairing, dtype, 21) + " layout " + std::to_string(static_cast<int>(layout)));
      }
    }
  }
}

TEST_P(RotateKernel, RotatesFromEveryLayoutIntoEveryOther) {
  for (const DType dtype : all_dtypes) {
    for (const MemoryLayout from : all_layouts) {
      for (const MemoryLayout to : all_layouts) {
        expect_rotation(rope(18, Pairing::halves), memory(dtype, from, 1, 2, 5, 20),
                        Positions::range(7, 5), Side::query, Action::forward, false, to,
                        text(Pairing::halves, dtype, 20) + " layouts " +
                            std::to_string(static_cast<int>(from)) + " to " +
                            std::to_string(static_cast<int>(to)));
      }
    }
  }
}

TEST_P(RotateKernel, RotatesASliceAndLeavesTheOtherChannels) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const bool in_place : {true, false}) {
        Plan plan = rope(34, pairing);
        plan.rotate->slice.first_dim = 5;
        expect_rotation(plan, memory(dtype, MemoryLayout::heads_first, 2, 2, 4, 43),
                        Positions::range(99, 4), Side::query, Action::forward, in_place,
                        MemoryLayout::tokens_first, text(pairing, dtype, 43));
      }
    }
  }
}

TEST_P(RotateKernel, RotatesBlocksPairedByThemselves) {
  for (const Pairing pairing : both_pairings) {
    for (const std::int64_t blocks : {2, 3, 6}) {
      Plan plan = rope(72, pairing);
      plan.rotate->slice.blocks = blocks;
      expect_rotation(plan, memory(DType::f32, MemoryLayout::tokens_first, 1, 2, 4, 72),
                      Positions::range(50, 4), Side::query, Action::forward, true,
                      MemoryLayout::tokens_first, text(pairing, DType::f32, 72));
    }
  }
}

// A plan with everything a rotation can have but heads and axes of their own.
Plan rich(Pairing pairing) {
  Plan plan = rope(22, pairing);
  plan.rotate->slice.first_dim = 1;
  plan.rotate->amplitude = 1.25;
  plan.rotate->values = Values::rotated_and_back;
  XposDecay growth{.scale = 64, .centre = 20};
  std::vector<double> magnitudes;
  for (std::int64_t r = 0; r < 11; ++r) {
    growth.factor.push_back(0.3 + 0.05 * static_cast<double>(r));
    magnitudes.push_back(1 + 0.02 * static_cast<double>(r));
  }
  plan.rotate->kind = Plain{.growth = growth, .magnitudes = magnitudes};
  return plan;
}

TEST_P(RotateKernel, ForwardTransposeAndInverseOfEverySideGrowAsTheReferenceDoes) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const Side side : {Side::query, Side::key, Side::value}) {
        for (const Action action : {Action::forward, Action::transpose, Action::inverse}) {
          expect_rotation(rich(pairing), memory(dtype, MemoryLayout::tokens_first, 1, 2, 9, 24),
                          Positions::range(60, 9), side, action, true, MemoryLayout::tokens_first,
                          text(pairing, dtype, 24) + " side " +
                              std::to_string(static_cast<int>(side)) + " action " +
                              std::to_string(static_cast<int>(action)));
        }
      }
    }
  }
}

TEST_P(RotateKernel, PairsMayHaveMagnitudesOfTheirOwn) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const Side side : {Side::query, Side::value}) {
        for (const Action action : {Action::forward, Action::transpose, Action::inverse}) {
          for (const std::int64_t axes : {1, 2}) {
            Plan plan = rope(22, pairing);
            plan.rotate->values = Values::rotated_and_back;
            Plain kind;
            for (std::int64_t r = 0; r < 11; ++r)
              kind.magnitudes.push_back(r < 4 ? 1 : 1.1 + 0.01 * static_cast<double>(r));
            plan.rotate->kind = kind;
            if (axes == 2) {
              plan.rotate->frequencies.axes = 2;
              std::vector<double>& radians = plan.rotate->frequencies.radians;
              radians.resize(22);
              for (std::size_t r = 5; r < 11; ++r) std::swap(radians[r], radians[11 + r]);
            }
            std::vector<std::int64_t> ids;
            for (std::int64_t i = 0; i < axes * 9; ++i) ids.push_back(37 * i);
            expect_rotation(plan, memory(dtype, MemoryLayout::tokens_first, 1, 2, 9, 24),
                            *Positions::ids(ids, axes), side, action, true,
                            MemoryLayout::tokens_first, text(pairing, dtype, 24));
          }
        }
      }
    }
  }
}

TEST_P(RotateKernel, HeadsMayHaveFrequenciesOfTheirOwnOnSeveralAxes) {
  std::mt19937 engine(3);
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      Plan plan;
      plan.rotate = Rotate{.slice = {.pairing = pairing, .rotary_dim = 14},
                           .frequencies = {.heads = 3, .axes = 2}};
      std::uniform_real_distribution<double> frequency(-1, 1);
      for (int i = 0; i < 3 * 2 * 7; ++i)
        plan.rotate->frequencies.radians.push_back(frequency(engine));
      std::vector<std::int64_t> ids;
      for (int i = 0; i < 2 * 2 * 19; ++i) ids.push_back(engine() % 5000);
      expect_rotation(plan, memory(dtype, MemoryLayout::heads_first, 2, 3, 19, 14),
                      *Positions::ids(ids, 2, 2), Side::query, Action::forward, true,
                      MemoryLayout::heads_first, text(pairing, dtype, 14));
    }
  }
}

// Phases of three heads, or one for all, on queries or on keys.
Plan with_phases(Plan plan, bool of_keys, std::int64_t heads) {
  Phase phase{.side = of_keys ? Side::key : Side::query, .heads = heads};
  for (std::int64_t i = 0; i < heads * plan.rotate->pairs(); ++i)
    phase.radians.push_back(std::sin(static_cast<double>(7 * i + heads)) * 4);
  plan.rotate->kind = Plain{.phase = phase};
  return plan;
}

TEST_P(RotateKernel, PhasesShiftTheirSideForwardsAndBack) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const std::int64_t heads : {1, 3}) {
        for (const Side side : {Side::query, Side::key, Side::value}) {
          for (const Action action : {Action::forward, Action::transpose, Action::inverse}) {
            expect_rotation(with_phases(rich(pairing), side == Side::key, heads),
                            memory(dtype, MemoryLayout::tokens_first, 1, 3, 9, 24),
                            Positions::range(60, 9), side, action, true, MemoryLayout::tokens_first,
                            text(pairing, dtype, 24) + " phases of " + std::to_string(heads));
          }
        }
      }
    }
  }
}

TEST_P(RotateKernel, PhasesOfEveryLayoutAndOddSize) {
  for (const DType dtype : all_dtypes) {
    for (const MemoryLayout layout : all_layouts) {
      for (const std::int64_t dim : {2, 18, 34, 66}) {
        const Plan plan = with_phases(rope(dim, Pairing::halves), false, 3);
        expect_rotation(plan, memory(dtype, layout, 2, 3, 13, dim + 1), Positions::range(997, 13),
                        Side::query, Action::forward, false, layout,
                        text(Pairing::halves, dtype, dim) + " phases");
      }
    }
  }
}

TEST_P(RotateKernel, PhasesOfHeadsThatShareFrequenciesOnTwoAxes) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = 14}, .frequencies = {.axes = 2}};
  for (int i = 0; i < 2 * 7; ++i) plan.rotate->frequencies.radians.push_back(std::cos(i));
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 2 * 2 * 19; ++i) ids.push_back(i * i % 5000);
  expect_rotation(with_phases(plan, true, 3),
                  memory(DType::f64, MemoryLayout::heads_first, 2, 3, 19, 14),
                  *Positions::ids(ids, 2, 2), Side::key, Action::forward, true,
                  MemoryLayout::heads_first, "two axes");
}

// Queries and keys of one call are, bit for bit, those of a call each.
void expect_together_as_alone(const Plan& plan, DType key_dtype = DType::f32) {
  Memory q = memory(DType::f32, MemoryLayout::packed_qkv, 2, 6, 20, 26);
  Memory k = memory(key_dtype, MemoryLayout::heads_first, 2, 2, 20, 26, 2);
  Memory q_alone = q, k_alone = k;
  const Positions positions = Positions::range(55, 20);
  ASSERT_TRUE(rotate(plan, q.view(), k.view(), positions, q.view(), k.view()));
  ASSERT_TRUE(rotate(plan, q_alone.view(), positions, Side::query, q_alone.view()));
  ASSERT_TRUE(rotate(plan, k_alone.view(), positions, Side::key, k_alone.view()));
  EXPECT_TRUE(q.storage == q_alone.storage);
  EXPECT_TRUE(k.storage == k_alone.storage);
}

TEST_P(RotateKernel, QueriesAndKeysTogetherEachHaveTheirPhases) {
  for (const bool of_keys : {false, true}) {
    expect_together_as_alone(with_phases(rope(24, Pairing::halves), of_keys, of_keys ? 2 : 6));
  }
}

// A mixture of some pairs' cosines, of each key head or one for all; what a pair takes adds up to 1
// at most, since errors grow with it.
Plan with_mixture(Plan plan, std::int64_t heads, std::int64_t inputs, std::int64_t outputs) {
  Mix mix{.heads = heads, .inputs = inputs, .outputs = outputs, .rest_sine = 0.75};
  const auto share = static_cast<double>(inputs);
  for (std::int64_t i = 0; i < heads * inputs * outputs; ++i) {
    mix.cosine.push_back(std::sin(static_cast<double>(7 * i + heads)) / share);
    mix.sine.push_back(std::cos(static_cast<double>(5 * i + heads)) / share);
  }
  plan.rotate->kind = mix;
  return plan;
}

TEST_P(RotateKernel, MixturesForwardsAndTransposed) {
  for (const DType dtype : all_dtypes) {
    for (const Pairing pairing : both_pairings) {
      for (const std::int64_t heads : {1, 3}) {
        for (const Side side : {Side::query, Side::key}) {
          for (const Action action : {Action::forward, Action::transpose}) {
            Plan plan = rope(20, pairing);
            plan.rotate->amplitude = 1.25;
            plan.rotate->slice.first_dim = 3;
            expect_rotation(with_mixture(plan, heads, 7, 5),
                            memory(dtype, MemoryLayout::tokens_first, 1,
                                   side == Side::query ? 6 : heads, 21, 24),
                            Positions::range(60, 21), side, action, true,
                            MemoryLayout::tokens_first,
                            text(pairing, dtype, 24) + " mixtures of " + std::to_string(heads));
          }
        }
      }
    }
  }
}

TEST_P(RotateKernel, MixturesOfEveryLayoutAndOddSize) {
  for (const DType dtype : all_dtypes) {
    for (const MemoryLayout layout : all_layouts) {
      for (const std::int64_t dim : {2, 18, 34, 66}) {
        const std::int64_t pairs = dim / 2;
        for (const std::int64_t outputs : {std::int64_t{0}, pairs - 1, pairs}) {
          expect_rotation(with_mixture(rope(dim, Pairing::halves), 3, pairs, outputs),
                          memory(dtype, layout, 2, 3, 13, dim + 1), Positions::range(997, 13),
                          Side::key, Action::forward, false, layout,
                          text(Pairing::halves, dtype, dim) + " mixtures");
        }
      }
    }
  }
}

TEST_P(RotateKernel, MixturesOfQueriesAndKeysTogether) {
  expect_together_as_alone(with_mixture(rope(24, Pairing::halves), 2, 9, 11));
}

TEST_P(RotateKernel, MixturesOnTwoAxes) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = 14}, .frequencies = {.axes = 2}};
  for (int i = 0; i < 2 * 7; ++i) plan.rotate->frequencies.radians.push_back(std::cos(i));
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 2 * 2 * 19; ++i) ids.push_back(i * i % 5000);
  expect_rotation(with_mixture(plan, 3, 6, 4),
                  memory(DType::f64, MemoryLayout::heads_first, 2, 3, 19, 14),
                  *Positions::ids(ids, 2, 2), Side::key, Action::forward, true,
                  MemoryLayout::heads_first, "two axes");
}

TEST_P(RotateKernel, TextStandsAtOnePositionOnEveryAxis) {
  Plan plan = rope(12, Pairing::halves);
  plan.rotate->frequencies.axes = 3;
  plan.rotate->frequencies.radians.assign(18, 0);
  for (std::size_t r = 0; r < 6; ++r)
    plan.rotate->frequencies.radians[r % 3 * 6 + r] = geometric(6)[r];
  expect_rotation(plan, memory(DType::f32, MemoryLayout::tokens_first, 2, 2, 70, 12),
                  Positions::range(0, 70), Side::query, Action::forward, true,
                  MemoryLayout::tokens_first, "text");
}

TEST_P(RotateKernel, RotatesIdsOfEverySequenceOfABatch) {
  std::mt19937_64 engine(4);
  for (const std::int64_t seq : {1, 3, 40}) {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < 5 * seq; ++i)
      ids.push_back(static_cast<std::int64_t>(engine() >> 40));
    for (const MemoryLayout layout : {MemoryLayout::heads_first, MemoryLayout::tokens_first}) {
      expect_rotation(rope(64, Pairing::halves), memory(DType::f64, layout, 5, 3, seq, 64),
                      *Positions::ids(ids, 1, 5), Side::query, Action::forward, true, layout,
                      "seq " + std::to_string(seq));
    }
  }
}

TEST_P(RotateKernel, RotatesNegativeAndVeryLargePositions) {
  for (const std::int64_t first : {-200L, 99999990L, 1L << 40, (1L << 53) - 100}) {
    expect_rotation(rope(16, Pairing::halves),
                    memory(DType::f64, MemoryLayout::tokens_first, 1, 1, 70, 16),
                    Positions::range(first, 70), Side::query, Action::forward, true,
                    MemoryLayout::tokens_first, "from " + std::to_string(first));
  }
}

TEST_P(RotateKernel, RotatesNothing) {
  for (const auto& [batch, heads, seq] : {std::array{0, 2, 3}, {2, 0, 3}, {2, 3, 0}}) {
    expect_rotation(rope(8, Pairing::halves),
                    memory(DType::f32, MemoryLayout::tokens_first, batch, heads, seq, 8),
                    Positions::range(0, seq), Side::query, Action::forward, true,
                    MemoryLayout::tokens_first, "nothing");
  }
}

TEST_P(RotateKernel, PlanWithoutARotationCopiesBitForBit) {
  for (const MemoryLayout to : all_layouts) {
    Memory from = memory(DType::f16, MemoryLayout::every_third, 2, 3, 4, 5);
    Memory into = memory(DType::f16, to, 2, 3, 4, 5, 2);
    const Tensor x = from.view(), y = into.view();
    ASSERT_TRUE(rotate(Plan{}, x, Positions::range(0, 4), Side::query, y));
    for_each_index(y, [&](auto b, auto h, auto t, auto c) {
      EXPECT_EQ(y.get(y.offset(b, h, t, c)), x.get(x.offset(b, h, t, c)));
    });
  }
}

// --- bits that must not depend on how a call is made --------------------------------------------

GuardedMemory rotated_bits(const Plan& plan, Memory x, const Positions& positions,
                           Threads threads = {}) {
  const Tensor view = x.view();
  EXPECT_TRUE(rotate(plan, view, positions, Side::query, view, threads));
  return std::move(x.storage);
}

TEST_P(RotateKernel, CutsOfARangeGiveTheSameBits) {
  for (const Plan& plan : {rope(32, Pairing::halves), rich(Pairing::interleaved)}) {
    const Memory x = memory(DType::f32, MemoryLayout::tokens_first, 1, 2, 200, 33);
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
    EXPECT_TRUE(parts.storage == whole);
  }
}

TEST_P(RotateKernel, IdsGiveTheSameBitsAsARange) {
  std::vector<std::int64_t> ids(150);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = 1000000 + static_cast<std::int64_t>(i);
  for (const DType dtype : all_dtypes) {
    const Memory x = memory(dtype, MemoryLayout::heads_first, 1, 2, 150, 48);
    const Plan plan = rope(48, Pairing::halves);
    EXPECT_EQ(rotated_bits(plan, x, Positions::range(1000000, 150)),
              rotated_bits(plan, x, *Positions::ids(ids)));
  }
}

TEST_P(RotateKernel, AnyNumberOfThreadsGivesTheSameBits) {
  for (const DType dtype : all_dtypes) {
    for (const MemoryLayout layout : {MemoryLayout::heads_first, MemoryLayout::tokens_first}) {
      const Memory x = memory(dtype, layout, 2, 8, 301, 128);
      const Plan plan = rope(128, Pairing::interleaved);
      const auto one = rotated_bits(plan, x, Positions::range(5, 301), {1});
      for (const int count : {0, 2, 3, 7}) {
        EXPECT_EQ(rotated_bits(plan, x, Positions::range(5, 301), {count}), one) << count;
      }
    }
  }
}

TEST_P(RotateKernel, ThreadsShareSequencesThatStandAtOnePosition) {
  const Memory x = memory(DType::f32, MemoryLayout::heads_first, 64, 32, 1, 128);
  const Plan plan = rope(128, Pairing::halves);
  EXPECT_EQ(rotated_bits(plan, x, Positions::range(77, 1), {3}),
            rotated_bits(plan, x, Positions::range(77, 1), {1}));
}

TEST_P(RotateKernel, CallsFromInsideOtherThreadsAreSafe) {
  const Memory x = memory(DType::f32, MemoryLayout::tokens_first, 1, 8, 200, 128);
  const Plan plan = rope(128, Pairing::halves);
  const auto wanted = rotated_bits(plan, x, Positions::range(0, 200), {1});
  std::vector<GuardedMemory> got(4);
#pragma omp parallel for num_threads(4)
  for (std::size_t i = 0; i < got.size(); ++i) {
    got[i] = rotated_bits(plan, x, Positions::range(0, 200));
  }
  for (const auto& each : got) EXPECT_EQ(each, wanted);
}

TEST_P(RotateKernel, QueriesAndKeysTogetherAreTheSameAsOneByOne) {
  for (const DType key_dtype : all_dtypes) {
    for (const Plan& plan : {rope(24, Pairing::halves), rich(Pairing::interleaved), Plan{}}) {
      expect_together_as_alone(plan, key_dtype);
    }
  }
}

TEST_P(RotateKernel, KeysThatAreRefusedLeaveQueriesAsTheyWere) {
  Memory q = memory(DType::f32, MemoryLayout::heads_first, 2, 2, 3, 8);
  Memory k = memory(DType::f32, MemoryLayout::heads_first, 1, 2, 3, 8, 2);
  const Memory before = q;
  const auto refused = rotate(rope(8, Pairing::halves), q.view(), k.view(), Positions::range(0, 3),
                              q.view(), k.view());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("the same batch of 2 sequences, got 1"),
            std::string::npos);
  EXPECT_TRUE(q.storage == before.storage);
}

// --- all numbers of 16 bits ---------------------------------------------------------------------

// Pairs (number, 0) of all 65,536 encodings at one position.
std::vector<std::uint16_t> all_encodings(const Plan& plan, DType dtype, std::int64_t position,
                                         bool by_reference) {
  std::vector<std::uint16_t> x(2 * 65536);
  for (std::size_t i = 0; i < 65536; ++i) x[2 * i] = static_cast<std::uint16_t>(i);
  const Tensor view = Tensor::dense(x.data(), dtype, {1, 65536, 1, 2});
  const Positions at = Positions::range(position, 1);
  EXPECT_TRUE(by_reference ? reference::rotate(plan, view, at, Side::query, view)
                           : rotate(plan, view, at, Side::query, view));
  return x;
}

TEST_P(RotateKernel, EverySixteenBitNumberIsItselfAtPositionZero) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto x = all_encodings(rope(2, Pairing::interleaved), dtype, 0, false);
    for (std::size_t i = 0; i < 65536; ++i) {
      const std::uint16_t infinity = dtype == DType::f16 ? 0x7c00 : 0x7f80;
      if ((i & 0x7fff) < infinity) {
        // 0 - 0 is 0: alone the sign of zero may go.
        if (i != 0x8000) {
          EXPECT_EQ(x[2 * i], i);
        }
        EXPECT_EQ(x[2 * i + 1] & 0x7fff, 0);
      }
    }
  }
}

// Where the exact result is a tie's neighbour it may fall to the other side of it, and nowhere
// else: what comes out is what some number within the bound of apply.h (2^-22.4 of a row, and the
// rounding of its product) rounds to.
TEST_P(RotateKernel, EverySixteenBitNumberRotatesAsInTheReference) {
  constexpr std::int64_t position = 12345;
  const double turned[] = {std::cos(double{position}), std::sin(double{position})};
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Plan plan = rope(2, Pairing::interleaved);
    const auto got = all_encodings(plan, dtype, position, false);
    const auto wanted = all_encodings(plan, dtype, position, true);
    const int infinity = dtype == DType::f16 ? 0x7c00 : 0x7f80;
    int different = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const int g = got[i] & 0x7fff, w = wanted[i] & 0x7fff;
      if (w > infinity) {
        EXPECT_GT(g, infinity) << i;
        continue;
      }
      if (w != 0) {
        EXPECT_EQ(got[i] >> 15, wanted[i] >> 15) << i;
      }
      if (g == w) continue;
      ++different;
      auto encoding = static_cast<std::uint16_t>(i / 2);
      const Tensor number = Tensor::dense(&encoding, dtype, {1});
      const double x = number.get(0), exact = x * turned[i % 2], error = std::abs(x) * 0x1p-22;
      number.set(0, exact - error);
      const double least = number.get(0);
      number.set(0, exact + error);
      const double most = number.get(0);
      encoding = got[i];
      EXPECT_TRUE(least <= number.get(0) && number.get(0) <= most) << i;
    }
    EXPECT_LE(different, 64);  // of 131,072
  }
}

}  // namespace
}  // namespace posenc
