#include "posenc/convolution.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>

#include "src/content/convolved_alone.h"
#include "src/core/saturating.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc {
namespace detail {
namespace {

// W as [to, from, tall, wide], of a line 1 x taps.
Expected<Tensor> weight_of(const PositionConvolution& of, std::int64_t width, bool picture) {
  const int rank = picture ? 4 : 3;
  if (!of.weight || of.weight.values.rank != rank)
    return fail(convolves,
                picture
                    ? "weight must be [width, width/groups, rows, columns] where there is a grid"
                    : "weight must be [width, width/groups, taps] where there is no grid",
                of.weight ? std::to_string(of.weight.values.rank) + " axes" : "none",
                picture ? "a Conv2d's weight goes with a picture"
                        : "give the picture's grid with a Conv2d's weight");
  POSENC_TRY(weight, viewed(convolves, "weight", of.weight.values, rank));
  const std::int64_t in = weight.shape[1];
  if (weight.shape[0] != width || in < 1 || width % in != 0)
    return fail(convolves, "weight must be [" + std::to_string(width) + ", width/groups, …]",
                "[" + std::to_string(weight.shape[0]) + ", " + std::to_string(in) + ", …]",
                "groups must divide the width");
  if (!picture) {
    weight.rank = 4;
    weight.shape[3] = weight.shape[2];
    weight.stride[3] = weight.stride[2];
    weight.shape[2] = 1;
    weight.stride[2] = 0;
  }
  const std::int64_t tall = weight.shape[2], wide = weight.shape[3];
  if (tall < 1 || wide < 1 || product(tall, wide) > (std::int64_t{1} << 20))
    return fail(convolves, "there must be 1 to 2^20 taps",
                std::to_string(tall) + " x " + std::to_string(wide),
                "the last axes of the weight are its taps");
  return weight;
}

template <class C>
C gelu(C x) {
  return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<C>));
}

template <class C>
void apply_after(AfterConvolution after, C* row, std::int64_t width) {
  if (after == AfterConvolution::none) return;
  if (after == AfterConvolution::normalised_gelu) normalise(row, width);
  for (std::int64_t c = 0; c < width; ++c) row[c] = gelu(row[c]);
}

// Rows of sums become tokens [t, t + count) of y; `own` is room for one of x.
template <class C>
void finish(const ConvolutionJob& job, std::int64_t b, std::int64_t t, std::int64_t count, C* sums,
            std::vector<C>& own, const Tensor& out) {
  const std::int64_t step = job.step();
  own.resize(static_cast<std::size_t>(step));
  for (std::int64_t i = 0; i < count; ++i) {
    C* const row = sums + i * step;
    apply_after(job.after, row, job.width);
    if (!job.adds || job.hides(b, t + i)) continue;
    load_rows(job.x, job.x.offset(b, 0, t + i), 1, own.data(), step);
    for (std::int64_t c = 0; c < job.width; ++c) row[c] += own[static_cast<std::size_t>(c)];
  }
  store_rows(sums, step, count, C{1}, out, out.offset(b, 0, t));
}

#if POSENC_SIMD
// Weights [tap][step] and a bias, as sum_taps() of BFloat16 reads them.
void arrange_pairs(std::int64_t step, std::vector<float>& weights, std::vector<float>& bias) {
  for (std::vector<float>* const all : {&weights, &bias}) {
    for (float& number : *all)
      if (std::isnan(number)) number = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t at = 0; at < std::ssize(*all); at += step)
      pair_channels(all->data() + at, step);
  }
}
#endif

// Channels alone, into rows that whole vectors may be written to, or through a few of ours.
template <class Element>
void convolve_alone(const ConvolutionJob& job, const std::vector<Compute<Element>>& weights,
                    const std::vector<Compute<Element>>& bias, const Tensor& out) {
  using C = Compute<Element>;
  const bool straight = lies_as<Element>(out);
  const auto place = [&](std::int64_t b, std::int64_t patch) {
    return out.offset(b, 0, job.kept + patch);
  };
  const auto room = [&](std::int64_t b, std::int64_t patch, Element* ours, std::int64_t step) {
    return straight ? TokenSums<Element>{static_cast<Element*>(out.data) + place(b, patch),
                                         out.stride[2]}
                    : TokenSums<Element>{ours, step};
  };
  if (straight && job.after == AfterConvolution::none)
    return convolve_alone<Element>(job, false, weights, bias, room, LeftThere{});
  if constexpr (std::is_same_v<Element, C>)  // sums of 16 bits are always left there
    convolve_alone<Element>(
        job, false, weights, bias, room,
        [&](std::int64_t b, std::int64_t patch, std::int64_t count, TokenSums<C> made,
            const auto& own) {
          for (std::int64_t i = 0; i < count && job.after != AfterConvolution::none; ++i) {
            C* const row = made.numbers + i * made.step;
            apply_after(job.after, row, job.width);
            if (job.adds)
              for (std::int64_t c = 0; c < job.width; ++c) row[c] += own(i)[c];
          }
          if (!straight) store_rows(made.numbers, made.step, count, C{1}, out, place(b, patch));
        });
}

// By the elements that x and y have, where nothing else is done with sums than to round them.
template <class C>
void convolve_alone(const ConvolutionJob& job, const Tensor& out) {
  std::vector<C> weights = packed_weights<C>(job, false), bias = bias_row<C>(job);
  const bool nothing_after = job.after == AfterConvolution::none;
  // x is what a weight of 1 more at the token itself adds.
  if (job.adds && nothing_after)
    for (std::int64_t c = 0; c < job.width; ++c)
      weights[static_cast<std::size_t>((job.up() * job.wide + job.left()) * job.step() + c)] += 1;
#if POSENC_SIMD
  if constexpr (std::is_same_v<C, float>) {
    if (nothing_after && lies_as<BFloat16>(job.x) && lies_as<BFloat16>(out)) {
      arrange_pairs(job.step(), weights, bias);
      return convolve_alone<BFloat16>(job, weights, bias, out);
    }
    if (nothing_after && lies_as<Half>(job.x) && lies_as<Half>(out))
      return convolve_alone<Half>(job, weights, bias, out);
  }
#endif
  convolve_alone<C>(job, weights, bias, out);
}

// x as numbers of its own, for where y goes to x's memory: its neighbours read it later.
template <class C>
std::vector<C> set_apart(ConvolutionJob& job) {
  const std::int64_t step = job.step();
  std::vector<C> copy(static_cast<std::size_t>(job.batch * job.tokens * step));
  for (std::int64_t b = 0; b < job.batch; ++b)
    load_rows(job.x, job.x.offset(b, 0, 0), job.tokens, copy.data() + b * job.tokens * step, step);
  job.x = Tensor::dense(copy.data(), {job.batch, 1, job.tokens, step});
  return copy;
}

template <class C>
void convolve(ConvolutionJob job, const Tensor& out) {
  for (std::int64_t b = 0; b < job.batch; ++b) copy_kept<C>(job, b, job.x, out);
  if (job.batch == 0 || job.patches() == 0) return;
  if (job.alone()) {
    const std::vector<C> apart = job.x.data == out.data ? set_apart<C>(job) : std::vector<C>{};
    return convolve_alone<C>(job, out);
  }
  const std::vector<C> weights = packed_weights<C>(job, false), bias = bias_row<C>(job);
  for (std::int64_t b = 0; b < job.batch; ++b) {
    std::vector<C> sums = sums_of_groups(job, b, weights, bias);
    share_out(job.patches(), job.threads, [&](std::int64_t first, std::int64_t last) {
      std::vector<C> own;
      finish(job, b, job.kept + first, last - first, sums.data() + first * job.step(), own, out);
    });
  }
}

}  // namespace

template <class C>
C normalise(C* row, std::int64_t width) {
  constexpr double epsilon = 1e-5;  // of LayerNorm, PyTorch's own
  double sum = 0, squares = 0;
  for (std::int64_t c = 0; c < width; ++c) sum += static_cast<double>(row[c]);
  const double mean = sum / static_cast<double>(width);
  for (std::int64_t c = 0; c < width; ++c) {
    const double away = static_cast<double>(row[c]) - mean;
    squares += away * away;
  }
  const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
  for (std::int64_t c = 0; c < width; ++c)
    row[c] = static_cast<C>((static_cast<double>(row[c]) - mean) * factor);
  return static_cast<C>(factor);
}
template float normalise(float*, std::int64_t);
template double normalise(double*, std::int64_t);

Tensor tokens_as_rows(const Tensor& x) {
  Tensor view = x;
  view.rank = 4;
  view.shape = {x.shape[0], 1, x.shape[1], x.shape[2]};
  view.stride = {x.stride[0], 0, x.stride[1], x.stride[2]};
  return view;
}

Expected<ConvolutionJob> convolution_job(const PositionConvolution& of,
                                         const ConvolvedTokens& given) {
  POSENC_TRY(x, viewed(convolves, "x", given.x, 3));
  const bool picture = given.grid != GridSize{};
  const std::int64_t width = x.shape[2], moving = x.shape[1] - given.kept;
  if (width < 1)
    return fail(convolves, "x must have a channel or more", std::to_string(width),
                "x is [batch, tokens, width]");
  POSENC_TRY(weight, weight_of(of, width, picture));
  if (given.kept < 0 || moving < 0 ||
      (picture && (given.grid.height < 1 || given.grid.width < 1 ||
                   product(given.grid.height, given.grid.width) != moving)))
    return fail(convolves, "tokens must be those kept and the patches of the grid",
                std::to_string(x.shape[1]) + " for " + std::to_string(given.kept) + " and " +
                    std::to_string(given.grid.height) + " x " + std::to_string(given.grid.width),
                "give the picture's rows and columns of patches");
  ConvolutionJob job{.batch = x.shape[0],
                     .tokens = x.shape[1],
                     .width = width,
                     .kept = given.kept,
                     .groups = width / weight.shape[1],
                     .in = weight.shape[1],
                     .rows = picture ? given.grid.height : 1,
                     .columns = picture ? given.grid.width : moving,
                     .tall = weight.shape[2],
                     .wide = weight.shape[3],
                     .after = of.after,
                     .adds = of.adds,
                     .keep = given.keep,
                     .x = tokens_as_rows(x),
                     .weight = weight};
  if (of.bias) {
    POSENC_TRY(bias, viewed(convolves, "bias", of.bias.values, 1));
    POSENC_CHECK(check_shape(convolves, "bias", bias, Tensor::dense(nullptr, bias.dtype, {width})));
    job.bias = bias;
  }
  job.threads = thread_count(given.threads, product(bytes_of(x), job.in * job.taps()));
  return job;
}

}  // namespace detail

Expected<void> convolve_positions(const PositionConvolution& convolution,
                                  const ConvolvedTokens& tokens, const Tensor& out) {
  POSENC_TRY(job, detail::convolution_job(convolution, tokens));
  POSENC_TRY(to, detail::viewed(detail::convolves, "out", out, 3));
  POSENC_TRY(from, detail::viewed(detail::convolves, "x", tokens.x, 3));
  POSENC_CHECK(detail::check_out(detail::convolves, from, to));
  if (job.x.dtype == DType::f64) {
    detail::convolve<double>(job, detail::tokens_as_rows(to));
  } else {
    detail::convolve<float>(job, detail::tokens_as_rows(to));
  }
  return {};
}

Expected<void> convolve_positions_reference(const PositionConvolution& convolution,
                                            const ConvolvedTokens& tokens, const Tensor& out) {
  POSENC_TRY(job, detail::convolution_job(convolution, tokens));
  POSENC_TRY(view, detail::viewed(detail::convolves, "out", out, 3));
  POSENC_CHECK(
      detail::check_shape(detail::convolves, "out", view,
                          Tensor::dense(nullptr, view.dtype, {job.batch, job.tokens, job.width})));
  POSENC_CHECK(detail::check_distinct(detail::convolves, view));
  const auto x = [&](std::int64_t b, std::int64_t t, std::int64_t c) {
    return job.hides(b, t) ? 0.0 : job.x.get(job.x.offset(b, 0, t, c));
  };
  std::vector<double> made(static_cast<std::size_t>(job.tokens * job.width));
  for (std::int64_t b = 0; b < job.batch; ++b) {
    for (std::int64_t t = 0; t < job.tokens; ++t) {
      double* const row = made.data() + t * job.width;
      if (t < job.kept) {
        for (std::int64_t c = 0; c < job.width; ++c) row[c] = job.x.get(job.x.offset(b, 0, t, c));
        continue;
      }
      const std::int64_t y = (t - job.kept) / job.columns, along = (t - job.kept) % job.columns;
      for (std::int64_t c = 0; c < job.width; ++c) {
        row[c] = job.b(c);
        for (std::int64_t tap = 0; tap < job.taps(); ++tap) {
          const std::int64_t i = y + tap / job.wide - job.up(),
                             j = along + tap % job.wide - job.left();
          if (i < 0 || i >= job.rows || j < 0 || j >= job.columns) continue;
          for (std::int64_t from = 0; from < job.in; ++from)
            row[c] += job.w(c, from, tap) *
                      x(b, job.kept + i * job.columns + j, c / job.in * job.in + from);
        }
      }
      detail::apply_after(job.after, row, job.width);
      if (job.adds)
        for (std::int64_t c = 0; c < job.width; ++c) row[c] += x(b, t, c);
    }
    for (std::int64_t t = 0; t < job.tokens; ++t)
      for (std::int64_t c = 0; c < job.width; ++c)
        view.set(view.offset(b, t, c), made[static_cast<std::size_t>(t * job.width + c)]);
  }
  return {};
}

Expected<void> merge_weight_norm(const Tensor& lengths, const Tensor& directions,
                                 const Tensor& weight) {
  constexpr std::string_view here = "merge_weight_norm";
  POSENC_TRY(g, detail::viewed(here, "lengths", lengths, 3));
  POSENC_TRY(v, detail::viewed(here, "directions", directions, 3));
  POSENC_TRY(out, detail::viewed(here, "weight", weight, 3));
  Tensor like = v;
  like.data = nullptr;
  POSENC_CHECK(detail::check_shape(here, "weight", out, like));
  POSENC_CHECK(detail::check_distinct(here, out));
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (g.shape[axis] != v.shape[axis] && g.shape[axis] != 1)
      return fail(here, "lengths must have the extents of directions, or 1",
                  std::to_string(g.shape[axis]) + " for " + std::to_string(v.shape[axis]),
                  "wav2vec 2.0 has [1, 1, taps]");
  const auto place = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    return std::array{g.shape[0] == 1 ? 0 : i, g.shape[1] == 1 ? 0 : j, g.shape[2] == 1 ? 0 : k};
  };
  const auto each = [&](const auto& act) {
    for (std::int64_t i = 0; i < v.shape[0]; ++i)
      for (std::int64_t j = 0; j < v.shape[1]; ++j)
        for (std::int64_t k = 0; k < v.shape[2]; ++k) act(i, j, k);
  };
  std::vector<double> squares(static_cast<std::size_t>(g.size()));
  const auto of = [&](std::int64_t i, std::int64_t j, std::int64_t k) -> double& {
    const auto [a, b, c] = place(i, j, k);
    return squares[static_cast<std::size_t>((a * g.shape[1] + b) * g.shape[2] + c)];
  };
  each([&](std::int64_t i, std::int64_t j, std::int64_t k) {
    const double x = v.get(v.offset(i, j, k));
    of(i, j, k) += x * x;
  });
  each([&](std::int64_t i, std::int64_t j, std::int64_t k) {
    const auto [a, b, c] = place(i, j, k);
    out.set(out.offset(i, j, k),
            g.get(g.offset(a, b, c)) * v.get(v.offset(i, j, k)) / std::sqrt(of(i, j, k)));
  });
  return {};
}

}  // namespace posenc
