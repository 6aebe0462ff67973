// Which positions can be told apart, and what the waves have in common with binary counting.
#include <algorithm>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_patterns {

constexpr std::string_view group = "uniqueness and patterns";
constexpr std::string_view vaswani = "1706.03762";

// Distance of rows k apart, the same from every position: the rows 0 and k.
struct Nearest {
  std::int64_t k = 0;
  double distance = 1e300;
};
Nearest nearest_rows(Lab& lab, std::int64_t width, std::int64_t rows) {
  const Matrix x = lab.table(width, rows);
  Nearest best;
  const Vector first = x.row(0);
  for (std::int64_t k = 1; k < rows; ++k)
    if (const double d = distance(first, x.row(k)); d < best.distance) best = {k, d};
  return best;
}

Evidence unique_rows(Lab& lab) {
  const Nearest two = nearest_rows(lab, 2, 65536), wide = nearest_rows(lab, 64, 65536);
  return found(say("Of 65,536 positions the nearest two are ", two.distance, " apart with d = 2 (",
                   two.k, " positions between them) and ", wide.distance, " with d = 64."),
               {outside("least distance with d = 2", two.distance, 1e-9),
                outside("least distance with d = 64", wide.distance, 1e-9)});
}

Evidence sines_alone(Lab& lab) {
  const Matrix x = lab.table(2, 65536);
  Vector sines;
  for (std::int64_t p = 0; p < x.rows; ++p) sines.push_back(x(p, 0));
  std::ranges::sort(sines);
  double gap = 2;
  for (std::size_t i = 1; i < sines.size(); ++i) gap = std::min(gap, sines[i] - sines[i - 1]);
  double multiple = 1;  // how near sin(p) = 0 comes to a position other than 0
  for (std::int64_t p = 1; p < x.rows; ++p) multiple = std::min(multiple, std::abs(x(p, 0)));
  return found(say("sin p differs for all 65,536 positions, the two nearest by ", gap,
                   "; no position is a multiple of π, the nearest has |sin p| = ", multiple, "."),
               {outside("least gap between two sines", gap, 0x1p-52),
                outside("least |sin p|, p > 0", multiple, rounding)});
}

// Rows equal to an earlier one once stored in 16 bits.
std::int64_t duplicates(Lab& lab, std::int64_t width, DType dtype) {
  constexpr std::int64_t rows = 65536;
  std::vector<double> exact(static_cast<std::size_t>(rows * width));
  lab.check(position_vectors(lab.plan(Sinusoidal{}, {.width = width}), Positions::range(0, rows),
                             Tensor::dense(exact.data(), {1, rows, width})));
  std::vector<std::uint16_t> stored(exact.size());
  const Tensor rounded = Tensor::dense(stored.data(), dtype, {rows * width});
  for (std::size_t i = 0; i < exact.size(); ++i)
    rounded.set(static_cast<std::int64_t>(i), exact[i]);
  const auto row = [&](std::int64_t p) {
    return std::span(stored).subspan(static_cast<std::size_t>(p * width),
                                     static_cast<std::size_t>(width));
  };
  std::vector<std::int64_t> order(rows);
  for (std::int64_t p = 0; p < rows; ++p) order[static_cast<std::size_t>(p)] = p;
  std::ranges::sort(order, [&](std::int64_t a, std::int64_t b) {
    return std::ranges::lexicographical_compare(row(a), row(b));
  });
  std::int64_t count = 0;
  for (std::size_t i = 1; i < order.size(); ++i)
    count += std::ranges::equal(row(order[i]), row(order[i - 1]));
  return count;
}

Evidence unique_when_rounded(Lab& lab) {
  const std::int64_t two = duplicates(lab, 2, DType::bf16),
                     two_half = duplicates(lab, 2, DType::f16);
  const std::int64_t four = duplicates(lab, 4, DType::bf16),
                     eight = duplicates(lab, 8, DType::bf16),
                     more = duplicates(lab, 64, DType::bf16);
  return found(
      say("Of 65,536 rows with d = 2, ", two, " repeat an earlier one in bfloat16 and ", two_half,
          " in float16; in bfloat16 the number is ", four, " with d = 4, ", eight,
          " with d = 8 and ", more, " with d = 64."),
      {outside("duplicates with d = 2, bfloat16", static_cast<double>(two), 0),
       inside("duplicates with d = 4, 8 and 64", static_cast<double>(four + eight + more), 0)});
}

Evidence period_of_dim_0(Lab& lab) {
  const Matrix x = lab.table(128, 8);
  std::int64_t as_bit = 0;  // signs that agree with 0, 1, 0, 1, …
  for (std::int64_t p = 0; p < x.rows; ++p) as_bit += (x(p, 0) < 0) == (p % 2 == 1);
  const double period = 2 * pi / lab.frequencies(128).front();
  return found(say("Channel 0 has the period ", period, ", not 2; of positions 0 to 7, ", as_bit,
                   " have the sign that a bit flipping each time would give."),
               {outside("period − 2", std::abs(period - 2), 1),
                outside("signs that differ from the bit", static_cast<double>(8 - as_bit), 0)});
}

Evidence row_zero(Lab& lab) {
  const Vector first = lab.table(128, 1).row(0);
  Vector pattern(128);
  for (std::size_t c = 1; c < 128; c += 2) pattern[c] = 1;
  return found(say("d = 128: row 0 is 0, 1, 0, 1, …, with the norm ", norm(first), "."),
               {outside("distance to a row of zeros", norm(first), rounding),
                inside("distance to (0, 1, 0, 1, …)", distance(first, pattern), 0)});
}

Evidence neighbouring_periods(Lab& lab) {
  const Vector f = lab.frequencies(128);
  const double ratio = f[0] / f[1], period = 2 * pi / f[10];
  return found(
      say("d = 128: each pair's period is ", ratio,
          " times the one before, a bit's 2; channel 21 "
          "(pair 10) has the period ",
          period, ", bit 21 has ", std::int64_t{1} << 22, "."),
      {outside("2 − ratio", 2 - ratio, 0.5),
       inside("ratio − 10000^(2/d)", std::abs(ratio - std::pow(10000, 2.0 / 128)), rounding)});
}

// How far pair r moves between position 0 and p.
double moved(const Matrix& rows, std::int64_t r, std::int64_t p_row) {
  return std::hypot(rows(p_row, 2 * r) - rows(0, 2 * r),
                    rows(p_row, 2 * r + 1) - rows(0, 2 * r + 1));
}

Evidence amplitude(Lab& lab) {
  const Matrix rows = lab.vectors(lab.plan(Sinusoidal{}, {.width = 128}), lab.ids({0, 44, 50}));
  const Vector f = lab.frequencies(128);
  double off = 0, circle = 0;
  for (std::int64_t r = 0; r < 64; ++r) {
    for (const std::int64_t row : {1, 2}) {
      const double p = row == 1 ? 44 : 50;
      off = std::max(off, std::abs(moved(rows, r, row) -
                                   2 * std::abs(std::sin(p * f[static_cast<std::size_t>(r)] / 2))));
      circle = std::max(circle, std::abs(std::hypot(rows(row, 2 * r), rows(row, 2 * r + 1)) - 1));
    }
  }
  return found(
      say("d = 128: every pair lies on the unit circle. Its displacement from position 0 is "
          "2|sin(pω/2)|: at p = 44 the first pair has moved ",
          moved(rows, 0, 1), ", the sixth ", moved(rows, 5, 1), "; at p = 50 the last has moved ",
          moved(rows, 63, 2), "."),
      {outside("how much more the sixth pair moved than the first",
               moved(rows, 5, 1) - moved(rows, 0, 1), rounding),
       inside("largest deviation from 2|sin(pω/2)|", off, rounding),
       inside("largest deviation from the unit circle", circle, rounding)});
}

Evidence rope_amplitude(Lab& lab) {
  const Plan plan = lab.rope(128, {.pairing = Pairing::interleaved});
  const Vector x = lab.normals(128), y = lab.rotated(plan, x, 50);
  double off = 0, largest = 0;
  for (std::size_t r = 0; r < 64; ++r) {
    const double pair = std::hypot(x[2 * r], x[2 * r + 1]);
    const double change = std::hypot(y[2 * r] - x[2 * r], y[2 * r + 1] - x[2 * r + 1]);
    off = std::max(
        off, std::abs(change - pair * 2 *
                                   std::abs(std::sin(
                                       25 * plan.rotate->at(0, 0, static_cast<std::int64_t>(r))))));
    largest = std::max(largest, std::abs(std::hypot(y[2 * r], y[2 * r + 1]) - pair));
  }
  return found(
      "d = 128, a random query at position 50: each pair keeps its length and moves by that length "
      "times 2|sin(pω/2)|.",
      {inside("largest deviation of the displacement", off, 1e-11),
       inside("largest change of a pair's length", largest, rounding)});
}

Evidence late_channels_move(Lab& lab) {
  const Vector f = lab.frequencies(128);
  const auto half = static_cast<std::int64_t>(std::llround(pi / f.back()));
  const Matrix rows = lab.vectors(lab.plan(Sinusoidal{}, {.width = 128}), lab.ids({0, 99, half}));
  return found(
      say("d = 128: the last pair has moved ", moved(rows, 63, 1), " at position 99, and ",
          moved(rows, 63, 2), " of at most 2 at position ", half, ", more than the first pair's ",
          moved(rows, 0, 2), "."),
      {inside("2 − displacement of the last pair after half a turn", 2 - moved(rows, 63, 2), 1e-6),
       outside("what it moves more than the first pair", moved(rows, 63, 2) - moved(rows, 0, 2),
               rounding)});
}

Evidence wave_function(Lab& lab) {
  const Vector f = lab.frequencies(64);
  double off = 0;
  for (std::size_t r = 1; r < f.size(); ++r)
    off = std::max(off, std::abs(f[r] / (1 / (10000 * 2.0 * static_cast<double>(r) / 64)) - 1));
  const double second = 1 / (10000 * 2.0 / 64);
  return found(say("With 10000·(2i/d) pair 0 divides by 0 and pair 1 has the frequency ", second,
                   "; it is ", f[1], " with the power."),
               {outside("largest relative difference of the frequencies", off, 1),
                inside("frequency 1 − 10000^(−2/d)", std::abs(f[1] - std::pow(10000, -2.0 / 64)),
                       rounding)});
}

Evidence first_pair_is_fastest(Lab& lab) {
  const Vector f = lab.frequencies(512);
  const auto rising = std::ranges::adjacent_find(f, std::less_equal<>{}) != f.end();
  return found(say("d = 512: the first pair turns ", f.front() / f.back(),
                   " times as fast as the last, and every pair is slower than the one before."),
               {outside("first frequency over last", f.front() / f.back(), 1),
                inside("pairs that are not slower than the one before", rising ? 1 : 0, 0)});
}

Evidence one_hertz(Lab& lab) {
  const Vector f = lab.frequencies(512);
  return found(say("d = 512: the first pair makes ", f.front() / (2 * pi),
                   " turns a position (1 rad), the last ", f.back() / (2 * pi), "."),
               {outside("| turns a position − 1 |", std::abs(f.front() / (2 * pi) - 1), 0.1),
                outside("first frequency − last", f.front() - f.back(), 0),
                inside("first frequency − 1 rad", std::abs(f.front() - 1), 0)});
}

constexpr Claim claims[] = {
    {4, 'a', group, "Every position has a vector of its own", "S0 S1 S3 S4", Verdict::right,
     "True for integers: pair 0 has ω = 1, and π is irrational",
     "PE(p) = PE(q) asks p − q = 2πn for ω = 1", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 2 --positions 0,710 --dtype float64",
     run<unique_rows>},
    {4, 'b', group, "With sines alone positions 0 and π would be the same", "S0", Verdict::wrong,
     "π is no position: the sine is injective on integers. Cosines are there for the linear map",
     "sin p = sin q asks p − q = 2πn or p + q = π(2n + 1)", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 2 --positions 0:65536 --dtype float64",
     run<sines_alone>},
    {4, 'c', group, "Positions stay distinct as the vectors are stored", "S0 S4", Verdict::sloppy,
     "In 16 bits two channels do not suffice; four do for 65,536 positions", "", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 2 --positions 0:65536 --dtype bfloat16",
     run<unique_when_rounded>},
    {7, 'a', group, "Channel 0 changes with every position exactly as the lowest bit does", "S3",
     Verdict::wrong, "Its period is 2π = 6.28 positions, a bit's is 2", "sin p against p mod 2",
     vaswani, "posenc table pe.npy --scheme sinusoidal --width 128 --positions 0:8",
     run<period_of_dim_0>},
    {7, 'b', group, "Row 0 is like the binary 0000", "S3", Verdict::wrong,
     "Row 0 is 0, 1, 0, 1, …: every cosine is 1 there", "PE(0) = (sin 0, cos 0, …)", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 128 --positions 0", run<row_zero>},
    {7, 'c', group, "Later channels slow down as higher bits do", "S3", Verdict::sloppy,
     "Both slow down geometrically, but by 10000^(2/d) a pair and not by 2 a bit",
     "λ_r/λ_{r−1} = 10000^(2/d)", vaswani, "compile(Sinusoidal{}, {.width = 128})",
     run<neighbouring_periods>},
    {8, 'a', group,
     "The amplitude falls from channel to channel, and position sits in the early ones", "S3",
     Verdict::sloppy,
     "The amplitude is 1 everywhere; what falls, and only on the whole, is the displacement",
     "‖PE_r(p) − PE_r(0)‖ = 2|sin(pω_r/2)|", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 128 --positions 0,44,50 --dtype float64",
     run<amplitude>},
    {8, 'b', group, "The same decreasing amplitude holds for RoPE", "S3", Verdict::sloppy,
     "A pair keeps its length; its displacement is that length times 2|sin(pω/2)|",
     "‖R_p x_r − x_r‖ = ‖x_r‖·2|sin(pω_r/2)|", "2104.09864",
     "rotate() at position 50 with Rope{.pairing = Pairing::interleaved}", run<rope_amplitude>},
    {8, 'c', group, "Late channels carry the token and hardly any position", "S3", Verdict::sloppy,
     "True of short texts only: after half a turn the last pair has moved as far as any can",
     "2|sin(pω/2)| = 2 at p = π/ω", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 128 --positions 0,99,27205",
     run<late_channels_move>},
    {9, 'a', group, "The divisor is 10000·(2i/d)", "S2", Verdict::wrong,
     "It is a power: 10000^(2i/d)", "f(i) = 10000^(2i/d)", vaswani,
     "compile(Sinusoidal{}, {.width = 64})", run<wave_function>},
    {9, 'b', group, "The first channels have the longest waves, later ones shorter", "S2",
     Verdict::wrong, "The first pair is the fastest and each next one slower",
     "ω_r = 10000^(−2r/d) falls with r", vaswani, "compile(Sinusoidal{}, {.width = 512})",
     run<first_pair_is_fastest>},
    {9, 'c', group, "Frequencies increase, from 1 Hz over the sequence", "S2", Verdict::wrong,
     "They decrease, from 1 radian (0.159 turns) a position", "ω_0 = 1 rad a position", vaswani,
     "compile(Sinusoidal{}, {.width = 512})", run<one_hertz>},
};

}  // namespace of_patterns

std::span<const Claim> pattern_claims() { return of_patterns::claims; }

}  // namespace posenc::detail
