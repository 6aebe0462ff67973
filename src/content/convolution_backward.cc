// Gradients of convolutions over neighbours: what goes back to the tokens is a convolution by the
// flipped weights, what goes to the weights a product of what a tap read and the slope there.
#include <cmath>
#include <numbers>

#include "src/content/convolved_alone.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc {
namespace detail {
namespace {

template <class C>
C gelu_slope(C x) {
  const C density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<C>);
  return (1 + std::erf(x / std::numbers::sqrt2_v<C>)) / 2 + x * density;
}

// A row of sums, and the gradient by f of it, becomes the gradient by the sums.
template <class C>
void through_after(AfterConvolution after, C* row, const C* gradient, std::int64_t width) {
  if (after == AfterConvolution::gelu) {
    for (std::int64_t c = 0; c < width; ++c) row[c] = gradient[c] * gelu_slope(row[c]);
    return;
  }
  const C factor = normalise(row, width);
  double mean = 0, along = 0;
  std::vector<C> slope(static_cast<std::size_t>(width));
  for (std::int64_t c = 0; c < width; ++c) {
    C& s = slope[static_cast<std::size_t>(c)] = gradient[c] * gelu_slope(row[c]);
    mean += static_cast<double>(s);
    along += static_cast<double>(s) * static_cast<double>(row[c]);
  }
  mean /= static_cast<double>(width);
  along /= static_cast<double>(width);
  for (std::int64_t c = 0; c < width; ++c)
    row[c] = static_cast<C>(static_cast<double>(factor) *
                            (static_cast<double>(slope[static_cast<std::size_t>(c)]) - mean -
                             static_cast<double>(row[c]) * along));
}

// One call's way back: what is wanted, and sums over the tokens of all sequences.
template <class C>
struct Back {
  const ConvolutionJob& job;
  bool wants_x = false, wants_weight = false;
  std::vector<C> weights = {}, bias = {}, flipped = {};
  std::vector<double> to_weight = {};  // [to][from][tap]
  std::vector<double> to_bias = {};

  Back(const ConvolutionJob& of, bool x, bool weight)
      : job(of),
        wants_x(x),
        wants_weight(weight),
        to_weight(weight ? static_cast<std::size_t>(of.width * of.in * of.taps()) : 0),
        to_bias(static_cast<std::size_t>(of.width)) {
    if (job.after != AfterConvolution::none)
      weights = packed_weights<C>(job, false), bias = bias_row<C>(job);
    if (wants_x) flipped = packed_weights<C>(job, true);
  }

  // Sums of a sequence whose channels stand alone, [patch][step], each on top of `begin`.
  static void sums_alone(const ConvolutionJob& of, bool flipped, const std::vector<C>& by,
                         const std::vector<C>& begin, std::vector<C>& sums) {
    convolve_alone<C>(
        of, flipped, by, begin,
        [&](std::int64_t, std::int64_t patch, C*, std::int64_t) {
          return TokenSums<C>{sums.data() + patch * of.step(), of.step()};
        },
        LeftThere{});
  }
  std::vector<C> sums_of(std::int64_t b) const {
    if (!job.alone()) return sums_of_groups(job, b, weights, bias);
    std::vector<C> sums(static_cast<std::size_t>(job.patches() * job.step()));
    sums_alone(job.sequence(b), false, weights, bias, sums);
    return sums;
  }

  // The gradient by the sums of a sequence, [patch][step], of that by f.
  std::vector<C> slopes(std::int64_t b, const std::vector<C>& arriving) const {
    if (job.after == AfterConvolution::none) return arriving;
    std::vector<C> slope = sums_of(b);
    for (std::int64_t t = 0; t < job.patches(); ++t)
      through_after(job.after, slope.data() + t * job.step(), arriving.data() + t * job.step(),
                    job.width);
    return slope;
  }

  void add_to_weight(std::int64_t to, std::int64_t from, std::int64_t tap, C value) {
    to_weight[static_cast<std::size_t>((to * job.in + from) * job.taps() + tap)] +=
        static_cast<double>(value);
  }

  // Of channels alone, from the slopes of a sequence to its tokens' gradient.
  void alone(std::int64_t b, std::vector<C>& slope, std::vector<C>& to_x) {
    if (wants_x) {
      ConvolutionJob back = job.sequence(b);
      back.tokens = job.patches(), back.kept = 0, back.keep = nullptr;
      back.x = Tensor::dense(slope.data(), {1, 1, back.tokens, job.step()});
      sums_alone(back, true, flipped, std::vector<C>(static_cast<std::size_t>(job.step())), to_x);
    }
    if (wants_weight) weights_alone(b, slope);
  }
  void weights_alone(std::int64_t b, const std::vector<C>& slope) {
    const std::int64_t step = job.step();
    Scratch scratch;
    Framed<C> in(job, job.width, false, scratch);
    fill(job, b, 0, job.width, in);
    std::vector<C> sums(static_cast<std::size_t>(job.taps() * step));
    share_out(step / row_lanes, job.threads, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * row_lanes, count = end * row_lanes - first;
      for (std::int64_t t = 0; t < job.patches(); ++t)
        for (std::int64_t tap = 0; tap < job.taps(); ++tap)
          add_products(
              slope.data() + t * step + first,
              in.at(t / job.columns + tap / job.wide, t % job.columns + tap % job.wide) + first,
              count, sums.data() + tap * step + first);
    });
    for (std::int64_t c = 0; c < job.width; ++c)
      for (std::int64_t tap = 0; tap < job.taps(); ++tap)
        add_to_weight(c, 0, tap, sums[static_cast<std::size_t>(tap * step + c)]);
  }

  void of_group(std::int64_t b, std::int64_t group, const std::vector<C>& slope,
                std::vector<C>& to_x) {
    Scratch scratch;
    const std::int64_t step = job.step(), own = padded(job.in), first = group * job.in;
    if (wants_x) {
      Framed<C> back(job, job.in, true, scratch);
      for (std::int64_t t = 0; t < job.patches(); ++t)
        std::copy_n(slope.data() + t * step + first, job.in,
                    back.patch(t / job.columns, t % job.columns));
      multiply_group(back, flipped.data() + group * (std::ssize(flipped) / job.groups), job.in,
                     to_x.data() + first, step);
    }
    if (!wants_weight) return;
    Framed<C> in(job, job.in, false, scratch);
    fill(job, b, first, job.in, in);
    // [across][from][to], of one row of taps: token by token, what a tap read times the slope.
    std::vector<C> sums(static_cast<std::size_t>(job.wide * own * job.in));
    for (std::int64_t down = 0; down < job.tall; ++down) {
      for (std::int64_t y = 0; y < job.rows; ++y)
        gemm(Gemm<C>{.c = sums.data(),
                     .c_step = job.in,
                     .rows = job.wide * own,
                     .columns = job.in,
                     .a = in.at(y + down, 0),
                     .a_row = 1,
                     .a_step = own,
                     .b = slope.data() + y * job.columns * step + first,
                     .b_step = step,
                     .depth = job.columns,
                     .adds = y > 0});
      for (std::int64_t across = 0; across < job.wide; ++across)
        for (std::int64_t from = 0; from < job.in; ++from)
          for (std::int64_t to = 0; to < job.in; ++to)
            add_to_weight(first + to, from, down * job.wide + across,
                          sums[static_cast<std::size_t>((across * own + from) * job.in + to)]);
    }
  }

  // A sequence's gradient by its tokens: through the convolution, and past it.
  void store(std::int64_t b, const std::vector<C>& arriving, std::vector<C>& to_x,
             const Tensor& x_gradient) const {
    for (std::int64_t t = 0; t < job.patches(); ++t) {
      C* const row = to_x.data() + t * job.step();
      if (job.hides(b, job.kept + t)) {
        std::fill_n(row, job.step(), C{0});
      } else if (job.adds) {
        for (std::int64_t c = 0; c < job.width; ++c)
          row[c] += arriving[static_cast<std::size_t>(t * job.step() + c)];
      }
    }
    store_rows(to_x.data(), job.step(), job.patches(), C{1}, x_gradient,
               x_gradient.offset(b, 0, job.kept));
  }

  void run(const Tensor& out_gradient, const Tensor& x_gradient) {
    std::vector<C> arriving(static_cast<std::size_t>(job.patches() * job.step())),
        to_x(arriving.size());
    for (std::int64_t b = 0; b < job.batch; ++b) {
      if (job.patches() > 0) {
        load_rows(out_gradient, out_gradient.offset(b, 0, job.kept), job.patches(), arriving.data(),
                  job.step());
        std::vector<C> slope = slopes(b, arriving);
        for (std::int64_t t = 0; t < job.patches(); ++t)
          for (std::int64_t c = 0; c < job.width; ++c)
            to_bias[static_cast<std::size_t>(c)] +=
                static_cast<double>(slope[static_cast<std::size_t>(t * job.step() + c)]);
        std::ranges::fill(to_x, C{0});
        if (job.alone())
          alone(b, slope, to_x);
        else
          share_out(job.groups, job.threads, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t group = first; group < last; ++group) of_group(b, group, slope, to_x);
          });
      }
      if (!wants_x) continue;
      copy_kept<C>(job, b, out_gradient, x_gradient);
      if (job.patches() > 0) store(b, arriving, to_x, x_gradient);
    }
  }
};

// Where a gradient goes, of the shape of what it is by. None: not wanted.
Expected<Tensor> wanted(std::string_view name, const Tensor& to, const Tensor& by) {
  if (!to) return Tensor{};
  POSENC_TRY(view, viewed(convolves, name, to, by.rank));
  Tensor like = by;
  like.data = nullptr;
  POSENC_CHECK(check_shape(convolves, name, view, like));
  POSENC_CHECK(check_distinct(convolves, view));
  return view;
}

template <class C>
void go_back(const ConvolutionJob& job, const Tensor& out_gradient, const Tensor& to_x,
             const Tensor& to_weight, const Tensor& to_bias) {
  Back<C> back(job, static_cast<bool>(to_x), static_cast<bool>(to_weight));
  back.run(tokens_as_rows(out_gradient), to_x ? tokens_as_rows(to_x) : Tensor{});
  if (to_weight) {
    const std::int64_t wide = to_weight.rank == 4 ? to_weight.shape[3] : 1;
    for (std::size_t i = 0; i < back.to_weight.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t tap = at % job.taps(), from = at / job.taps() % job.in,
                         to = at / job.taps() / job.in;
      to_weight.set(to_weight.rank == 4 ? to_weight.offset(to, from, tap / wide, tap % wide)
                                        : to_weight.offset(to, from, tap),
                    back.to_weight[i]);
    }
  }
  if (to_bias)
    for (std::int64_t c = 0; c < job.width; ++c)
      to_bias.set(to_bias.offset(c), back.to_bias[static_cast<std::size_t>(c)]);
}

}  // namespace
}  // namespace detail

Expected<void> convolve_positions_backward(const PositionConvolution& convolution,
                                           const ConvolvedTokens& tokens,
                                           const Tensor& out_gradient,
                                           const ConvolutionGradients& gradients) {
  POSENC_TRY(job, detail::convolution_job(convolution, tokens));
  POSENC_TRY(x, detail::viewed(detail::convolves, "x", tokens.x, 3));
  POSENC_TRY(arriving, detail::viewed(detail::convolves, "out_gradient", out_gradient, 3));
  Tensor like = x;
  like.data = nullptr;
  POSENC_CHECK(detail::check_shape(detail::convolves, "out_gradient", arriving, like));
  POSENC_TRY(to_x, detail::wanted("x's gradient", gradients.x, x));
  POSENC_TRY(to_weight,
             detail::wanted("weight's gradient", gradients.weight, convolution.weight.values));
  POSENC_TRY(to_bias, detail::wanted("bias's gradient", gradients.bias,
                                     Tensor::dense(nullptr, gradients.bias.dtype, {job.width})));
  if (job.x.dtype == DType::f64) {
    detail::go_back<double>(job, arriving, to_x, to_weight, to_bias);
  } else {
    detail::go_back<float>(job, arriving, to_x, to_weight, to_bias);
  }
  return {};
}

}  // namespace posenc
