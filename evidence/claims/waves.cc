// The sinusoid's wavelengths, its linear map between positions, and its distances.
//   PE[p, 2r] = sin(p·ω_r), PE[p, 2r+1] = cos(p·ω_r), ω_r = 10000^(−2r/d)
#include <algorithm>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_waves {

constexpr std::string_view group = "wavelengths and the linear map";
constexpr std::string_view vaswani = "1706.03762";

double last_wavelength(Lab& lab, std::int64_t width) {
  return 2 * pi / lab.frequencies(width).back();
}

Evidence last_wavelengths(Lab& lab) {
  const double stated = 2 * pi * 10000;
  const std::int64_t widths[] = {64, 128, 512};
  double off = 1, formula = 0;
  std::string list;
  for (const std::int64_t d : widths) {
    const double wavelength = last_wavelength(lab, d);
    const double exponent = static_cast<double>(d - 2) / static_cast<double>(d);
    off = std::min(off, std::abs(wavelength / stated - 1));
    formula = std::max(formula, std::abs(wavelength / (2 * pi * std::pow(10000, exponent)) - 1));
    list += say(list.empty() ? "" : ", ", wavelength, " (d = ", d, ")");
  }
  const Plan ends = lab.plan(Sinusoidal{.spacing = WaveSpacing::ends}, {.width = 512});
  const Waves* waves = ends.add ? std::get_if<Waves>(&ends.add->kind) : nullptr;
  const double reached = waves ? 2 * pi / waves->frequency.back() : 0;
  return found(say("The longest wavelength is ", list, ", not ", stated,
                   "; tensor2tensor's spacing, which divides by d/2 − 1, ends at ", reached, "."),
               {outside("least relative distance to 2π·10000", off, 0.01),
                inside("relative distance to 2π·10000^((d−2)/d)", formula, rounding),
                inside("tensor2tensor's last wavelength / 2π·10000 − 1",
                       std::abs(reached / stated - 1), rounding)});
}

Evidence geometric_growth(Lab& lab) {
  const Vector f = lab.frequencies(512);
  double spread = 0;
  for (std::size_t r = 1; r < f.size(); ++r)
    spread = std::max(spread, std::abs(f[r - 1] / f[r] / (f[0] / f[1]) - 1));
  return found(say("d = 512: the first wavelength is ", 2 * pi / f[0], ", each next one ",
                   f[0] / f[1], " times as long, over all ", f.size(), " pairs."),
               {inside("spread of the ratio between neighbours", spread, rounding),
                inside("first frequency − 1", std::abs(f[0] - 1), 0)});
}

// The slowest pair alone: its vector comes back after one wavelength.
Evidence slowest_wave_repeats(Lab& lab) {
  const std::int64_t d = 128;
  const auto turn = static_cast<std::int64_t>(std::llround(last_wavelength(lab, d)));
  const Matrix rows = lab.vectors(lab.plan(Sinusoidal{}, {.width = d}), lab.ids({0, 1, turn}));
  const auto slowest = [&](std::int64_t r) { return Vector{rows(r, d - 2), rows(r, d - 1)}; };
  const double step = distance(slowest(0), slowest(1)), back = distance(slowest(0), slowest(2));
  return found(
      say("d = 128: position ", turn, " lies ", back,
          " from position 0 on the slowest wave, "
          "nearer than the neighbour's ",
          step, "; all channels together are ", distance(rows.row(0), rows.row(2)), " apart."),
      {outside("neighbour's distance over that after one wavelength", step / back, 1),
       outside("distance of the whole vectors", distance(rows.row(0), rows.row(2)), rounding)});
}

// (sin, cos) of every pair, moved by k.
Vector moved(const Vector& x, std::span<const double> frequency, double k) {
  Vector out(x.size());
  for (std::size_t r = 0; r < frequency.size(); ++r) {
    const double c = std::cos(k * frequency[r]), s = std::sin(k * frequency[r]);
    out[2 * r] = c * x[2 * r] + s * x[2 * r + 1];
    out[2 * r + 1] = -s * x[2 * r] + c * x[2 * r + 1];
  }
  return out;
}

double map_residual(Lab& lab, const Plan& plan, std::span<const double> frequency) {
  double most = 0;
  for (const std::int64_t p : {0, 1, 7, 100, 511, 4096}) {
    for (const std::int64_t k : {1, 2, 10, 100, 1000}) {
      const Matrix rows = lab.vectors(plan, lab.ids({p, p + k}));
      most = std::max(
          most,
          largest_difference(moved(rows.row(0), frequency, static_cast<double>(k)), rows.row(1)));
    }
  }
  return most;
}

Evidence linear_map(Lab& lab) {
  const double residual =
      map_residual(lab, lab.plan(Sinusoidal{}, {.width = 512}), lab.frequencies(512));
  return found(
      "d = 512, six positions up to 4,096 and five offsets up to 1,000: one matrix M_k for each "
      "offset takes PE(p) to PE(p + k), whatever p is.",
      {inside("largest |M_k·PE(p) − PE(p + k)|", residual, rounding)});
}

Evidence any_frequencies(Lab& lab) {
  Waves waves{.width = 64, .frequency = lab.normals(32)};
  for (double& f : waves.frequency) f = std::abs(f);
  const Vector frequency = waves.frequency;
  double ratio_spread = 0;
  for (std::size_t r = 2; r < 32; ++r)
    ratio_spread = std::max(ratio_spread, std::abs(std::log(frequency[r] / frequency[r - 1])));
  const Plan plan = lab.take(checked(Plan{.add = Add{.kind = std::move(waves)}}));
  return found(
      say("32 frequencies drawn at random, from ", std::ranges::min(frequency), " to ",
          std::ranges::max(frequency), " rad a position, have the same linear map."),
      {inside("largest |M_k·PE(p) − PE(p + k)|", map_residual(lab, plan, frequency), rounding),
       outside("largest |ln ratio| of neighbours (a geometric series has one ratio)", ratio_spread,
               0.5)});
}

Evidence map_is_rotation(Lab& lab) {
  // The map of one pair, read off where the vectors are (0, 1) and its turned image.
  const double k = 7;
  const Vector f = lab.frequencies(64);
  double most = 0;
  for (std::size_t r = 0; r < f.size(); ++r) {
    const Vector a = moved({1, 0}, std::span(f).subspan(r, 1), k);
    const Vector b = moved({0, 1}, std::span(f).subspan(r, 1), k);
    most = std::max({most, std::abs(dot(a, b)), std::abs(norm(a) - 1), std::abs(norm(b) - 1),
                     std::abs(a[0] * b[1] - a[1] * b[0] - 1)});
    const Plan back = lab.rope(2, {.scaling = Explicit{.frequencies = {f[r]}}});
    const auto turned = [&](const Vector& x) { return lab.rotated(back, x, 7, Way::inverse); };
    most = std::max(
        {most, largest_difference(a, turned({1, 0})), largest_difference(b, turned({0, 1}))});
  }
  return found(
      "d = 64, k = 7: in every pair M_k is orthogonal with determinant 1, and equals posenc's "
      "rotation by −k·ω.",
      {inside("largest deviation from the rotation by −kω", most, rounding)});
}

Evidence position_is_not_channel(Lab& lab) {
  const Matrix rows = lab.table(2, 101);
  double claim = 0, ours = 0;
  for (std::int64_t p = 0; p < 100; ++p) {
    const double q = static_cast<double>(p);
    claim = std::max(claim, std::abs(rows(p + 1, 0) - std::cos(q)));
    ours = std::max({ours, std::abs(rows(p, 0) - std::sin(q)), std::abs(rows(p, 1) - std::cos(q))});
  }
  return found(say("Channel 0 of position p + 1 differs from cos p by up to ", claim,
                   "; the cosine is channel 1 of the same position."),
               {outside("largest |PE[p+1, 0] − cos p|", claim, 0.1),
                inside("largest |PE[p] − (sin p, cos p)|", ours, rounding)});
}

double step(const Matrix& rows, std::int64_t from, std::int64_t to) {
  return distance(rows.row(from), rows.row(to));
}

Evidence equal_steps(Lab& lab) {
  const Matrix rows = lab.table(512, 2000);
  const double first = step(rows, 0, 1);
  double spread = 0;
  for (std::int64_t p = 1; p + 1 < rows.rows; ++p)
    spread = std::max(spread, std::abs(step(rows, p, p + 1) - first));
  return found(say("d = 512: every position of the first 2,000 lies ", first, " from the next."),
               {inside("spread of the distance between neighbours", spread, rounding)});
}

Evidence distance_is_not_linear(Lab& lab) {
  const Matrix rows =
      lab.vectors(lab.plan(Sinusoidal{}, {.width = 512}), lab.ids({0, 1, 10, 1000, 10000, 30000}));
  Vector d;
  for (std::int64_t r = 1; r < rows.rows; ++r) d.push_back(step(rows, 0, r));
  return found(
      say("d = 512: at distance 1, 10, 1,000, 10,000 and 30,000 the vectors are ", d[0], ", ", d[1],
          ", ", d[2], ", ", d[3], " and ", d[4], " apart: it saturates and even falls."),
      {outside("10 steps of a linear code over its distance at 10, − 1", 10 * d[0] / d[1] - 1,
               rounding),
       outside("fall from 10,000 to 30,000", d[3] - d[4], rounding)});
}

Evidence bounded(Lab& lab) {
  const Matrix rows = lab.vectors(lab.plan(Sinusoidal{}, {.width = 512}),
                                  lab.ids({0, 1, 5000, 1000000, 1000000000000}));
  double beyond = 0, most = 0;
  for (const double x : rows.values) most = std::max(most, std::abs(x));
  beyond = std::max(0.0, most - 1);
  return found(say("d = 512: the largest entry at positions up to 10^12 is ", most, "."),
               {inside("how far an entry passes 1", beyond, 0)});
}

Evidence constant_norm(Lab& lab) {
  const Matrix rows = lab.table(512, 5001);
  double off = 0;
  for (std::int64_t p = 0; p < rows.rows; ++p)
    off = std::max(off, std::abs(norm(rows.row(p)) - std::sqrt(256.0)));
  return found(
      say("d = 512: the norm is √(d/2) = ", norm(rows.row(5000)), " at each of 5,001 positions."),
      {inside("largest | ‖PE‖ − √(d/2) |", off, rounding)});
}

constexpr Claim claims[] = {
    {1, 'a', group, "The wavelengths of the sinusoid run from 2π to 10000·2π", "S0 S4",
     Verdict::sloppy,
     "The last pair has 2π·10000^((d−2)/d): the end 10000·2π is reached by tensor2tensor's code "
     "alone",
     "λ_r = 2π·10000^(2r/d), r = 0 … d/2 − 1", vaswani,
     "posenc table pe.npy --scheme sinusoidal --spacing ends --width 512 --positions 0:100",
     run<last_wavelengths>},
    {1, 'b', group, "Wavelengths begin at 2π and grow geometrically from pair to pair", "S0 S4",
     Verdict::right, "The ratio of neighbours is 10000^(2/d)", "λ_r/λ_{r−1} = 10000^(2/d)", vaswani,
     "compile(Sinusoidal{}, {.width = 512}), add.kind's frequency", run<geometric_growth>},
    {1, 'c', group, "10000 sets the longest wave, on which even long texts get distinct points",
     "S4", Verdict::sloppy,
     "The slowest wave alone repeats after one wavelength; beyond it the other pairs tell "
     "positions apart",
     "λ_last = 2π·10000^((d−2)/d)", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 128 --positions 0,1,54410",
     run<slowest_wave_repeats>},
    {2, 'a', group, "PE(p + k) is a linear function of PE(p) that depends on k alone",
     "S0 S1 S3 S4", Verdict::right, "True for every k, by one 2 × 2 block for each pair",
     "M_k = [[cos kω, sin kω], [−sin kω, cos kω]] on (sin, cos)", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 512 --positions 100,107 --dtype float64",
     run<linear_map>},
    {2, 'b', group, "The geometric series was chosen because it makes that map linear", "S0",
     Verdict::wrong, "Any frequencies have the linear map; the series sets the range of scales",
     "M_k needs a sine and a cosine of one ω, whatever ω is", vaswani,
     "checked(Plan{.add = Add{.kind = Waves{…}}}) with frequencies of your own",
     run<any_frequencies>},
    {2, 'c', group, "The matrix of that map is a rotation", "S1 S3 S4", Verdict::right,
     "It rotates (sin, cos) by −kω", "M_kᵀM_k = 1, det M_k = 1, M_k = R(−kω)", vaswani,
     "rotate_inverse() with Explicit{.frequencies = {ω}} at position k", run<map_is_rotation>},
    {3, 'a', group, "Position p is encoded as sin p and position p + 1 as cos p", "S1",
     Verdict::wrong, "Sine and cosine are two channels of one position, not two positions",
     "PE[p, 2r] = sin(pω_r), PE[p, 2r+1] = cos(pω_r)", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 2 --positions 0:101 --dtype float64",
     run<position_is_not_channel>},
    {5, 'a', group, "Neighbouring positions are equally far apart everywhere", "S1", Verdict::right,
     "‖PE(p+1) − PE(p)‖ does not depend on p", "‖PE(p+k) − PE(p)‖² = Σ 4 sin²(kω_r/2)", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 512 --positions 0:2000 --dtype float64",
     run<equal_steps>},
    {5, 'b', group, "The encoding is linear in the position, as a distance", "S1", Verdict::wrong,
     "The map between positions is linear; the distance saturates and oscillates",
     "‖PE(p+k) − PE(p)‖ = 2·√(Σ sin²(kω_r/2))", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 512 --positions 0,1,10,1000,10000,30000",
     run<distance_is_not_linear>},
    {6, 'a', group, "All values lie between −1 and 1, at any position", "S3 S4", Verdict::right,
     "Sines and cosines do, however large the position", "|PE| ≤ 1", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 512 --positions 5000,1000000", run<bounded>},
    {6, 'b', group, "The vectors neither grow nor shrink over a long text", "S3", Verdict::right,
     "Every vector has the norm √(d/2)", "‖PE‖ = √(d/2)", vaswani,
     "posenc table pe.npy --scheme sinusoidal --width 512 --positions 0:5001 --dtype float64",
     run<constant_norm>},
};

}  // namespace of_waves

std::span<const Claim> waves_claims() { return of_waves::claims; }

}  // namespace posenc::detail
