// RoPE beyond its trained length: interpolation, NTK-aware scaling, YaRN and their dynamic forms.
#include <algorithm>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_scaling {

constexpr std::string_view group = "longer contexts";
constexpr std::string_view yarn_paper = "2309.00071";
constexpr std::int64_t dim = 128, trained = 4096;

Vector frequencies(Lab& lab, const Scaling& scaling, std::int64_t length = 0) {
  return lab
      .take(rope_frequencies<double>(Rope{.scaling = scaling}, {.head_dim = dim, .length = length}))
      .frequency;
}

// Pairs that turn less than once within the trained length: at four times it they meet new angles.
std::int64_t unseen_pairs(const Vector& f, std::int64_t length) {
  return std::ranges::count_if(f, [&](double w) {
    const double seen = std::min(w * trained, 2 * pi) + 1e-9;
    return std::min(w * static_cast<double>(length), 2 * pi) > seen;
  });
}

// The unscaled frequencies compared with those interpolated to four times the length.
std::int64_t unseen_interpolated(Lab& lab) {
  const Vector base = frequencies(lab, Unscaled{}), scaled = frequencies(lab, Linear{.factor = 4});
  std::int64_t count = 0;
  for (std::size_t r = 0; r < base.size(); ++r)
    count += std::min(scaled[r] * 4 * trained, 2 * pi) > std::min(base[r] * trained, 2 * pi) + 1e-9;
  return count;
}

Evidence unseen_angles(Lab& lab) {
  const std::int64_t unseen = unseen_pairs(frequencies(lab, Unscaled{}), 4 * trained);
  const std::int64_t after = unseen_interpolated(lab);
  return found(
      say("d = 128, trained to 4,096 and run to 16,384: ", unseen,
          " of 64 pairs reach angles never seen in training; interpolated by 4, ", after, " do."),
      {outside("pairs with angles never seen, unscaled", static_cast<double>(unseen), 0),
       inside("pairs with angles never seen, interpolated", static_cast<double>(after), 0)});
}

Evidence defined_everywhere(Lab& lab) {
  const Matrix rows =
      lab.vectors(lab.plan(Sinusoidal{}, {.width = dim}), lab.ids({5000, 10000000}));
  const Vector x = lab.normals(dim), y = lab.rotated(lab.rope(dim), x, 10000000);
  const double off = std::max(std::abs(norm(rows.row(1)) - 8), std::abs(norm(y) / norm(x) - 1));
  const std::int64_t unseen = unseen_pairs(frequencies(lab, Unscaled{}), 4 * trained);
  return found(
      say("Sinusoid and RoPE have values at position 10,000,000, with the norm they always "
          "have; but "
          "at four times the trained 4,096 tokens ",
          unseen, " of 64 pairs are at new angles."),
      {inside("largest deviation of the norms", off, rounding),
       outside("pairs with angles never seen", static_cast<double>(unseen), 0)});
}

Evidence interpolation_factor(Lab& lab) {
  const double m = trained * 2 - 1;
  const double ours = m * frequencies(lab, Linear{.factor = 2})[0];
  const double theirs = m * frequencies(lab, Linear{.factor = trained * 2})[0];
  return found(
      say("4,096 tokens stretched to 8,192: with s = 2 the last position becomes ", shown(ours, 5),
          ", inside the trained range; with s = 8,192 all positions fall below ", theirs, "."),
      {outside("trained range over the last position, s = new length", trained / theirs, 10),
       inside("last position with s = L′/L", ours, trained)});
}

Evidence fast_pairs_suffer(Lab& lab) {
  const Vector base = frequencies(lab, Unscaled{}),
               interpolated = frequencies(lab, Linear{.factor = 16}),
               yarn = frequencies(lab,
                                  Yarn{.factor = 16, .original_max_position_embeddings = trained});
  return found(
      say("s = 16: neighbours differ by ", base[0], " rad in the fastest pair; interpolated by ",
          interpolated[0], ", under YaRN by ", yarn[0], "."),
      {inside("| interpolated/unscaled − 1/16 |", std::abs(interpolated[0] / base[0] - 1.0 / 16),
              rounding),
       inside("| YaRN's fastest pair − unscaled |", std::abs(yarn[0] - base[0]), 0)});
}

// Of ln frequency against the pair's number, the largest second difference: 0 for one base.
double bend(const Vector& f) {
  double most = 0;
  for (std::size_t r = 2; r < f.size(); ++r)
    most = std::max(most, std::abs(std::log(f[r] * f[r - 2] / (f[r - 1] * f[r - 1]))));
  return most;
}

Evidence ntk_changes_base(Lab& lab) {
  const double s = 4, base = 10000 * std::pow(s, dim / (dim - 2.0));
  const Vector ntk = frequencies(lab, NtkAware{.factor = s});
  const Vector rebased =
      lab.take(rope_frequencies<double>(Rope{.rope_theta = base}, {.head_dim = dim})).frequency;
  return found(say("s = 4: NTK-aware scaling is RoPE with the base ", base, "."),
               {inside("largest difference to RoPE with that base",
                       largest_difference(ntk, rebased), rounding),
                inside("largest bend of ln frequency", bend(ntk), rounding)});
}

Evidence yarn_has_no_base(Lab& lab) {
  const Vector base = frequencies(lab, Unscaled{});
  const Vector yarn =
      frequencies(lab, Yarn{.factor = 4, .original_max_position_embeddings = trained});
  const auto same = static_cast<std::int64_t>(std::ranges::mismatch(base, yarn).in1 - base.begin());
  std::int64_t divided = 0;
  for (std::size_t r = 0; r < base.size(); ++r)
    divided += std::abs(yarn[r] * 4 / base[r] - 1) < rounding;
  return found(
      say("s = 4, L = 4,096: YaRN leaves the first ", same, " pairs alone, divides the last ",
          divided, " by 4 and blends between; no base gives that."),
      {outside("largest bend of ln frequency (0 for a base)", bend(yarn), 1e-3),
       inside("change of the fastest pair", std::abs(yarn[0] - base[0]), 0),
       inside("| slowest pair·4/unscaled − 1 |", std::abs(yarn.back() * 4 / base.back() - 1),
              rounding)});
}

Evidence ntk_ends(Lab& lab) {
  const Vector base = frequencies(lab, Unscaled{}), ntk = frequencies(lab, NtkAware{.factor = 4});
  return found(
      say("s = 4: the first pair keeps ", ntk[0], " rad, the last is divided by ",
          base.back() / ntk.back(), "."),
      {inside("change of the first frequency", std::abs(ntk[0] - base[0]), 0),
       inside("| divisor of the last − 4 |", std::abs(base.back() / ntk.back() - 4), 1e-10)});
}

Evidence by_parts(Lab& lab) {
  const Vector base = frequencies(lab, Unscaled{});
  const Vector parts =
      frequencies(lab, NtkByParts{.factor = 4, .original_max_position_embeddings = trained});
  double fast = 0, slow = 0, order = 0;
  for (std::size_t r = 0; r < base.size(); ++r) {
    const double turns = base[r] * trained / (2 * pi), divisor = base[r] / parts[r];
    if (turns > 32) fast = std::max(fast, std::abs(divisor - 1));
    if (turns < 1) slow = std::max(slow, std::abs(divisor - 4));
    if (r > 0) order = std::max(order, base[r - 1] / parts[r - 1] - divisor);
  }
  return found(
      "s = 4, L = 4,096: pairs with more than 32 turns keep their frequency, those with less than "
      "one are divided by 4, and the divisor rises between.",
      {inside("largest | divisor − 1 | above 32 turns", fast, rounding),
       inside("largest | divisor − 4 | below one turn", slow, rounding),
       inside("largest fall of the divisor from pair to pair", order, rounding)});
}

Evidence ntk_middle(Lab& lab) {
  const Vector base = frequencies(lab, Unscaled{}), ntk = frequencies(lab, NtkAware{.factor = 4});
  std::int64_t stretched = 0, short_of = 0;
  for (std::size_t r = 0; r < base.size(); ++r) {
    const double turns = base[r] * trained / (2 * pi), divisor = base[r] / ntk[r];
    stretched += turns > 32 && divisor > 1.01;
    short_of += turns < 1 && divisor < 4 - 1e-9;
  }
  return found(say("s = 4, L = 4,096: NTK-aware scaling stretches ", stretched,
                   " pairs that make over 32 turns and need none, and leaves ", short_of,
                   " that make less than one short of ÷4, so they reach new angles."),
               {outside("pairs stretched without need", static_cast<double>(stretched), 0),
                outside("pairs stretched too little", static_cast<double>(short_of), 0)});
}

constexpr Claim claims[] = {
    {19, 'a', group, "RoPE generalises excellently to longer texts", "S0", Verdict::wrong,
     "Unscaled it meets angles never trained on; scaled, it can be stretched",
     "θ_r·p > θ_r·L for pairs with less than a turn in L", "2306.15595",
     "posenc explain llama-2-7b --at 16384", run<unseen_angles>},
    {19, 'b', group, "Sinusoids and RoPE are defined for any position, yet degrade past training",
     "S2 S4", Verdict::right, "Defined everywhere; what is new beyond training are the angles", "",
     "2306.15595", "posenc table pe.npy --scheme sinusoidal --width 128 --positions 5000,10000000",
     run<defined_everywhere>},
    {36, 'a', group, "Position interpolation divides by s, the new length", "S2", Verdict::wrong,
     "s is the new length over the trained one", "m → m·L/L′", "2306.15595",
     "rope_frequencies<double>(Rope{.scaling = Linear{.factor = 2}}, {.head_dim = 128})",
     run<interpolation_factor>},
    {36, 'b', group, "Interpolation harms the high frequencies, that is short distances", "S2",
     Verdict::right, "True: the angle between neighbours shrinks by s in every pair", "θ_r/s",
     "2306.15595", "rope_frequencies<double>() with Linear and Yarn, factor 16",
     run<fast_pairs_suffer>},
    {39, 'a', group, "NTK-aware scaling changes RoPE's base", "S4", Verdict::right, "True",
     "b′ = b·s^(d/(d−2))", yarn_paper,
     "rope_frequencies<double>(Rope{.scaling = NtkAware{.factor = 4}}, {.head_dim = 128})",
     run<ntk_changes_base>},
    {39, 'b', group, "YaRN changes RoPE's base", "S4", Verdict::wrong,
     "YaRN rescales pair by pair between its two ends; no base gives its frequencies",
     "ramp·θ_r/s + (1 − ramp)·θ_r", yarn_paper,
     "rope_frequencies<double>() with Yarn{.factor = 4, .original_max_position_embeddings = 4096}",
     run<yarn_has_no_base>},
    {39, 'c', group, "NTK-aware: short-range channels stay, long-range ones are stretched", "S2",
     Verdict::right, "True: the first pair not at all, the last by exactly s",
     "θ′_0 = θ_0, θ′_last = θ_last/s", yarn_paper,
     "rope_frequencies<double>() with NtkAware{.factor = 4}", run<ntk_ends>},
    {39, 'd', group, "By parts: low frequencies scaled most, high not at all, others between", "S2",
     Verdict::right, "True", "γ = clamp((ρ − α)/(β − α), 0, 1), ρ = Lθ/2π", yarn_paper,
     "rope_frequencies<double>() with NtkByParts{.factor = 4, .original_max_position_embeddings = "
     "4096}",
     run<by_parts>},
    {39, 'e', group, "NTK-aware scaling stretches the middle frequencies too widely", "S2",
     Verdict::sloppy, "Those with many turns too much, and those with less than one too little", "",
     yarn_paper, "rope_frequencies<double>() with NtkAware{.factor = 4}", run<ntk_middle>},
};

}  // namespace of_scaling

std::span<const Claim> scaling_claims() { return of_scaling::claims; }

}  // namespace posenc::detail
