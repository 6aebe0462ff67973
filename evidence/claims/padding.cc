// What engineers get wrong: padding, layouts of code, odd widths, float rounding of the
// frequencies.
#include <algorithm>
#include <limits>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_padding {

constexpr std::string_view group = "implementation";
constexpr std::string_view vaswani = "1706.03762";

Evidence left_padding_absolute(Lab& lab) {
  const Matrix rows = lab.table(512, 8);
  const double moved = distance(rows.row(0), rows.row(3));
  return found(say("d = 512, three pads on the left: the first real token gets row 3, ", moved,
                   " away from row 0."),
               {outside("distance of its vector to the right one", moved, 0.1)});
}

Evidence left_padding_relative(Lab& lab) {
  const std::int64_t pads = 3, n = 6, dim = 16;
  Vector buckets = lab.normals(32);
  T5 t5;
  t5.table = Table::borrow(Tensor::dense(buckets.data(), {32, 1}));
  const Matrix x = lab.normal_rows(n, dim);
  Matrix padded = lab.normal_rows(n + pads, dim);
  std::ranges::copy(x.values, padded.values.begin() + pads * dim);
  std::vector<std::uint8_t> keep(static_cast<std::size_t>(n + pads), 1);
  std::fill_n(keep.begin(), pads, std::uint8_t{0});
  double most = 0;
  for (const Scheme& scheme : {Scheme{Rope{}}, Scheme{Alibi{}}, Scheme{t5}}) {
    const Plan plan = lab.plan(scheme, {.heads = 1, .kv_heads = 1, .head_dim = dim});
    const Matrix right = lab.attend(plan, x, x, x, Positions::range(0, n), {}).out;
    const Matrix shifted = lab.attend(plan, padded, padded, padded, Positions::range(0, n + pads),
                                      {.keep = keep.data()})
                               .out;
    for (std::int64_t t = 0; t < n; ++t)
      most = std::max(most, largest_difference(right.row(t), shifted.row(t + pads)));
  }
  return found(
      "RoPE, ALiBi and T5, three hidden pads on the left and positions counted over them: the six "
      "real tokens' outputs are those without padding.",
      {inside("largest change of an output by the shift", most, rounding)});
}

Evidence positions_from_mask(Lab& lab) {
  const std::uint8_t mask[] = {0, 0, 0, 1, 1, 1, 1, 1};
  const Positions positions = lab.take(Positions::from_mask(mask, 1));
  const Matrix x = lab.vectors(lab.plan(Sinusoidal{}, {.width = 512}), positions);
  const Matrix right = lab.table(512, 5);
  double off = 0;
  for (std::int64_t t = 0; t < 5; ++t)
    off = std::max(off, largest_difference(x.row(t + 3), right.row(t)));
  return found(
      "Positions counted over the real tokens only: the five tokens after three pads get the rows "
      "0 to 4.",
      {inside("largest difference to the rows without padding", off, 0)});
}

Evidence printed_code(Lab& lab) {
  const std::int64_t d = 64;
  const Matrix ours = lab.table(d, 200);
  double off = 0;
  for (std::int64_t p = 0; p < 200; ++p)
    for (std::int64_t i = 0; i < d; i += 2) {
      const double angle = static_cast<double>(p) /
                           std::pow(10000.0, static_cast<double>(i) / static_cast<double>(d));
      off = std::max({off, std::abs(ours(p, i) - std::sin(angle)),
                      std::abs(ours(p, i + 1) - std::cos(angle))});
    }
  const Plan rope = lab.rope(d, {.pairing = Pairing::interleaved});
  const Vector x = lab.normals(d), y = lab.rotated(rope, x, 17);
  double turned = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(d); i += 2) {
    const double theta = 17 / std::pow(10000.0, static_cast<double>(i) / static_cast<double>(d));
    const double c = std::cos(theta), s = std::sin(theta);
    turned = std::max({turned, std::abs(y[i] - (x[i] * c - x[i + 1] * s)),
                       std::abs(y[i + 1] - (x[i] * s + x[i + 1] * c))});
  }
  return found(
      "d = 64: dividing the position by 10000^(i/d) for even i gives posenc's table, and the even "
      "and odd channels rotated by it posenc's interleaved rotation.",
      {inside("largest difference of 200 rows of the table", off, rounding),
       inside("largest difference of a rotated vector", turned, rounding)});
}

Evidence odd_width(Lab& lab) {
  const std::int64_t d = 7;
  const std::int64_t angles = (d + 1) / 2, cosines = d / 2;
  const Vector row =
      lab.vectors(lab.plan(Sinusoidal{}, {.width = d}), Positions::range(3, 1)).row(0);
  const auto rope = compile(Scheme{Rope{}}, {.head_dim = d});
  return found(
      say("Width 7: there are ", angles, " angles and ", cosines,
          " odd channels for their cosines, so slices of unequal length. posenc's last channel is "
          "the sine ",
          row[6], "; a rotation is refused: \"", rope ? "" : rope.error().rule, "\"."),
      {outside("angles − odd channels", static_cast<double>(angles - cosines), 0),
       inside("| last channel − sin(3·10000^(−6/7)) |",
              std::abs(row[6] - std::sin(3 * std::pow(10000, -6.0 / 7))), rounding),
       inside("an odd head is rotated (1: yes)", rope ? 1 : 0, 0)});
}

// Errors of the frequencies in units of the float rounding 2^−24.
struct FloatErrors {
  double exponential = 0, power = 0;
};
FloatErrors float_errors(Lab& lab, std::int64_t d) {
  const Vector exact = lab.frequencies(d);
  const auto width = static_cast<float>(d);
  FloatErrors most;
  for (std::size_t r = 0; r < exact.size(); ++r) {
    const float even = 2 * static_cast<float>(r);
    const float exponential = std::exp(even * (-std::log(10000.0F) / width));
    const float power = 1 / std::pow(10000.0F, even / width);
    const auto error = [&](float f) { return std::abs(f / exact[r] - 1) / 0x1p-24; };
    most.exponential = std::max(most.exponential, error(exponential));
    most.power = std::max(most.power, error(power));
  }
  return most;
}

Evidence log_space(Lab& lab) {
  const FloatErrors at = float_errors(lab, 128);
  return {
      "The frequencies of d = 128 in float, against double: through exp and log they are several "
      "times less accurate than through pow.",
      say("Here exp(−2r·ln 10000/d) is off by up to ", at.exponential,
          " u and 1/pow(10000, 2r/d) by ", at.power, " u (u = 2^−24)."),
      {outside("error of exp-log over that of pow", at.exponential / at.power, 1)}};
}

Evidence no_overflow(Lab& lab) {
  const Vector f = lab.frequencies(8192);
  const double largest = 1 / f.back(), half = half_to_float(0x7bff);
  return found(say("d = 8,192: the largest divisor is ", largest, "; float ends at ",
                   static_cast<double>(std::numeric_limits<float>::max()), ", and even float16 at ",
                   half, "."),
               {inside("largest divisor, against the largest float16", largest, half)});
}

constexpr Claim claims[] = {
    {11, 'a', group, "10000^(2i/d) may overflow, so it is computed in log space", "S0",
     Verdict::wrong, "It never passes 10,000, which even float16 holds", "10000^(2i/d) < 10000",
     vaswani, "compile(Sinusoidal{}, {.width = 8192})", run<no_overflow>},
    {11, 'b', group, "exp(−2i·ln 10000/d) is numerically more stable than the power", "S3",
     Verdict::wrong, "It is less accurate: the rounded logarithm is multiplied before exp", "",
     vaswani, "std::exp and std::pow in float, against compile() in double", run<log_space>},
    {31, 'a', group, "Left padding shifts the positions of real tokens", "S4", Verdict::right,
     "True of absolute schemes that count over the pads", "", "",
     "posenc table pe.npy --scheme sinusoidal --width 512 --positions 0,3",
     run<left_padding_absolute>},
    {31, 'b', group, "That shift is a bug whatever the scheme", "S4", Verdict::sloppy,
     "A uniform shift cancels for RoPE, ALiBi and T5, as long as the pads are hidden", "", "",
     "attend_reference() with Mask::keep, padded and not", run<left_padding_relative>},
    {31, 'c', group, "Counting positions over real tokens only is a cure", "S4", Verdict::right,
     "True: Positions::from_mask", "p = real tokens before", "",
     "posenc positions --mask '0,0,0,1,1,1,1,1'", run<positions_from_mask>},
    {32, 'a', group, "The printed programs compute the paper's table and rotation", "S4",
     Verdict::right, "True for even widths", "pos/10000^(i/d), i = 0, 2, 4 …", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 64 --positions 0:200 --dtype float64",
     run<printed_code>},
    {32, 'b', group, "The NumPy program takes any width, as the JavaScript one does", "S4",
     Verdict::sloppy, "An odd width has one sine more than cosines: its slices do not fit", "",
     vaswani, "posenc table pe.npy --scheme sinusoidal --width 7 --positions 3 --dtype float64",
     run<odd_width>},
};

}  // namespace of_padding

std::span<const Claim> padding_claims() { return of_padding::claims; }

}  // namespace posenc::detail
