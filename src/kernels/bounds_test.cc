// Kernels stay within their tensors, and give the reference's numbers, at every width: tensors lie
// between pages that nobody may touch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "src/kernels/reference.h"
#include "tests/guarded_memory.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {

using Beside = GuardedMemory::Beside;
constexpr Beside both_guards[] = {Beside::end, Beside::start};

class KernelBounds : public EveryInstructionSet {};

INSTANTIATE_TEST_SUITE_P(Sets, KernelBounds, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

std::vector<std::int64_t> widths() {
  std::vector<std::int64_t> all;
  for (std::int64_t width = 1; width <= 130; ++width) all.push_back(width);
  all.insert(all.end(), {511, 513, 1000});
  return all;
}

// A tensor of its own between guards, whose first or last element lies beside one of them.
struct Guarded {
  GuardedMemory memory;
  Tensor view;

  // `step`: numbers from a row to the next.
  Guarded(DType dtype, std::initializer_list<std::int64_t> shape, std::int64_t step, Beside beside)
      : memory(bytes(dtype, shape, step), beside),
        view(Tensor::dense(memory.data(), dtype, shape)) {
    std::int64_t stride = step;
    for (int axis = view.rank - 2; axis >= 0; --axis) {
      view.stride[static_cast<std::size_t>(axis)] = stride;
      stride *= view.shape[static_cast<std::size_t>(axis)];
    }
  }

  // Fresh memory is zeros, and stays so where no element lies.
  bool untouched_between_rows() const {
    const std::int64_t width = view.shape[static_cast<std::size_t>(view.rank - 1)];
    const std::int64_t step = view.stride[static_cast<std::size_t>(view.rank - 2)];
    const std::int64_t rows = width == 0 ? 0 : view.size() / width;
    const Tensor all = Tensor::dense(memory.data(), view.dtype, {(rows - 1) * step + width});
    for (std::int64_t row = 0; row + 1 < rows; ++row) {
      for (std::int64_t i = row * step + width; i < (row + 1) * step; ++i) {
        if (all.get(i) != 0) return false;
      }
    }
    return true;
  }

 private:
  // The last row has no room behind it.
  static std::size_t bytes(DType dtype, std::initializer_list<std::int64_t> shape,
                           std::int64_t step) {
    std::int64_t rows = 1;
    for (const std::int64_t extent : shape) rows *= extent;
    const std::int64_t width = *(shape.end() - 1);
    rows /= width;
    return static_cast<std::size_t>((rows - 1) * step + width) * size_of(dtype);
  }
};

constexpr std::int64_t crossing_tokens = 13;
// They cross from one block of 64 to the next, in fours and alone.
const Positions crossing = Positions::range(58, crossing_tokens);

struct Embedding {
  Plan plan;
  std::int64_t width;
  std::vector<double> waves;  // [crossing_tokens][width], by the reference

  Embedding(std::int64_t of, std::int64_t pairs, WaveLayout layout)
      : width(of), waves(static_cast<std::size_t>(crossing_tokens * of)) {
    plan.add = Add{.kind = Waves{.width = width, .layout = layout, .frequency = geometric(pairs)},
                   .embedding_scale = 1.5};
    EXPECT_TRUE(detail::reference::position_vectors(
        plan, crossing, Tensor::dense(waves.data(), {1, crossing_tokens, width})));
  }

  double wave(std::int64_t t, std::int64_t c) const {
    return waves[static_cast<std::size_t>(t * width + c)];
  }

  static double number(std::int64_t t, std::int64_t c) {
    return static_cast<double>((7 * t + 3 * c) % 17 - 8) / 8;  // exact in every dtype
  }

  void expect(DType dtype, std::int64_t batch, std::int64_t step, Beside beside, bool adds,
              Threads threads) const {
    const Guarded x(dtype, {batch, crossing_tokens, width}, step, beside);
    const Guarded out(dtype, {batch, crossing_tokens, width}, step, beside);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t t = 0; t < crossing_tokens; ++t) {
        for (std::int64_t c = 0; c < width; ++c) x.view.set(x.view.offset(b, t, c), number(t, c));
      }
    }
    const auto done = adds ? add(plan, x.view, crossing, out.view, threads)
                           : position_vectors(plan, crossing, out.view, threads);
    ASSERT_TRUE(done) << done.error().message();
    double worst = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t t = 0; t < crossing_tokens; ++t) {
        for (std::int64_t c = 0; c < width; ++c) {
          const double wanted = wave(t, c) + (adds ? 1.5 * number(t, c) : 0);
          const double error = std::abs(out.view.get(out.view.offset(b, t, c)) - wanted);
          if (!(error <= worst)) worst = error;
        }
      }
    }
    EXPECT_TRUE(out.untouched_between_rows())
        << name(dtype) << ", width " << width << ", batch " << batch;
    EXPECT_LE(worst, 3 * compute_step(dtype) + 2 * step_of(dtype))
        << name(dtype) << ", width " << width << ", batch " << batch << ", rows " << step
        << " apart, " << (adds ? "added" : "alone");
  }

  static double step_of(DType dtype) { return posenc::step(dtype) * 1.5; }

  void expect_everywhere() const {
    for (const DType dtype : all_dtypes) {
      for (const std::int64_t batch : {1, 2}) {
        for (const Beside beside : both_guards) {
          for (const bool adds : {false, true}) {
            expect(dtype, batch, width, beside, adds, {1});
            expect(dtype, batch, width + 3, beside, adds, {1});
          }
        }
      }
      expect(dtype, 1, width, Beside::end, true, {3});
    }
  }
};

TEST_P(KernelBounds, WavesOfEveryWidthInterleaved) {
  for (const std::int64_t width : widths()) {
    Embedding(width, (width + 1) / 2, WaveLayout::interleaved).expect_everywhere();
  }
}

TEST_P(KernelBounds, WavesOfEveryWidthConcatenated) {
  for (const std::int64_t width : widths()) {
    Embedding(width, (width + 1) / 2, WaveLayout::concatenated).expect_everywhere();
  }
}

TEST_P(KernelBounds, WavesThatDoNotReachEveryChannel) {
  for (const WaveLayout layout : {WaveLayout::interleaved, WaveLayout::concatenated}) {
    for (const std::int64_t width : {2, 31, 32, 64, 65, 96, 128, 1000, 4096}) {
      for (const std::int64_t pairs : {1, 9, 20})
        if (2 * pairs <= width) Embedding(width, pairs, layout).expect_everywhere();
    }
  }
}

TEST_P(KernelBounds, RotationOfEveryHeadDim) {
  for (const std::int64_t dim : widths()) {
    if (dim < 2) continue;
    for (const std::int64_t rotary : {dim / 2 * 2, dim / 4 * 2}) {
      if (rotary == 0) continue;
      for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
        const Plan plan = rope(rotary, pairing);
        for (const DType dtype : all_dtypes) {
          for (const Beside beside : both_guards) {
            const Guarded x(dtype, {1, 2, crossing_tokens, dim}, dim, beside);
            std::vector<double> exact(static_cast<std::size_t>(2 * crossing_tokens * dim));
            const Tensor truth = Tensor::dense(exact.data(), {1, 2, crossing_tokens, dim});
            for_each_index(truth, [&](auto b, auto h, auto t, auto c) {
              x.view.set(x.view.offset(b, h, t, c), Embedding::number(t + h, c));
              truth.set(truth.offset(b, h, t, c), Embedding::number(t + h, c));
            });
            ASSERT_TRUE(rotate(plan, x.view, crossing, Side::query, x.view));
            ASSERT_TRUE(detail::reference::rotate(plan, truth, crossing, Side::query, truth));
            double worst = 0;
            for_each_index(truth, [&](auto b, auto h, auto t, auto c) {
              const double error = std::abs(x.view.get(x.view.offset(b, h, t, c)) -
                                            truth.get(truth.offset(b, h, t, c)));
              if (!(error <= worst)) worst = error;
            });
            EXPECT_LE(worst, 4 * compute_step(dtype) + step(dtype))
                << name(dtype) << ", " << rotary << " of " << dim;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace posenc
