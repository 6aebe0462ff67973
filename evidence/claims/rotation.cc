// What a rotation is and does: its algebra, its conventions and its frequencies.
//   R(φ)(a, b) = (a cos φ − b sin φ, a sin φ + b cos φ), pair r at position p turns by p·θ_r
#include <algorithm>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_rotation {

constexpr std::string_view group = "rotations";
constexpr std::string_view roformer = "2104.09864";

Evidence isometry(Lab& lab) {
  const Plan plan = lab.rope(128);
  double off = 0;
  for (const std::int64_t p : {1, 50, 4096, 1000000}) {
    const Vector x = lab.normals(128);
    off = std::max(off, std::abs(norm(lab.rotated(plan, x, p)) / norm(x) - 1));
  }
  return found("d = 128, random vectors at positions up to 1,000,000 keep their length.",
               {inside("largest relative change of the norm", off, rounding)});
}

Evidence composition(Lab& lab) {
  const Plan plan = lab.rope(128);
  const Vector x = lab.normals(128);
  const Vector twice = lab.rotated(plan, lab.rotated(plan, x, 300), 712);
  return found(
      "d = 128: turning a random vector by position 300 and then by 712 is turning it by 1,012.",
      {inside("largest |R(712)R(300)x − R(1012)x|",
              largest_difference(twice, lab.rotated(plan, x, 1012)), rounding)});
}

Evidence inverse(Lab& lab) {
  const Plan plan = lab.rope(128);
  const Vector x = lab.normals(128), y = lab.normals(128);
  const Vector there = lab.rotated(plan, x, 5000);
  const double transposed = dot(there, y) - dot(x, lab.rotated(plan, y, 5000, Way::inverse));
  return found(
      "d = 128, position 5,000: rotating back restores the vector, and the inverse is the "
      "transpose.",
      {inside("largest |R⁻¹Rx − x|",
              largest_difference(lab.rotated(plan, there, 5000, Way::inverse), x), rounding),
       inside("| (Rx)·y − x·(R⁻¹y) |", std::abs(transposed), 1e-11)});
}

// x · R_k y for a k of either sign.
double turned_product(Lab& lab, const Plan& plan, const Vector& x, const Vector& y,
                      std::int64_t k) {
  return dot(x, lab.rotated(plan, y, std::abs(k), k < 0 ? Way::inverse : Way::forward));
}

Evidence sign(Lab& lab) {
  const Plan plan = lab.rope(128);
  const Vector x = lab.normals(128), y = lab.normals(128);
  const std::int64_t m = 11, n = 4;
  const double score = dot(lab.rotated(plan, x, m), lab.rotated(plan, y, n));
  const double stated = turned_product(lab, plan, x, y, m - n);
  const double ours = turned_product(lab, plan, x, y, n - m);
  return found(say("d = 128, m = 11, n = 4: (R_m x)·(R_n y) = ", score, "; x·R_{m−n} y = ", stated,
                   ", x·R_{n−m} y = ", ours, "."),
               {outside("| score − x·R_{m−n} y |", std::abs(score - stated), 1e-9),
                inside("| score − x·R_{n−m} y |", std::abs(score - ours), 1e-11)});
}

Evidence right_sign(Lab& lab) {
  const Plan plan = lab.rope(128);
  double off = 0;
  for (const auto& [m, n] : {std::pair{0, 0}, {11, 4}, {4, 11}, {4096, 1}, {1, 100000}}) {
    const Vector x = lab.normals(128), y = lab.normals(128);
    off = std::max(off, std::abs(dot(lab.rotated(plan, x, m), lab.rotated(plan, y, n)) -
                                 turned_product(lab, plan, x, y, n - m)));
  }
  return found("d = 128, five pairs of positions up to 100,000: R_mᵀR_n acts as R_{n−m}.",
               {inside("largest | score − x·R_{n−m} y |", off, 1e-10)});
}

// The two channels of every pair exchanged.
Vector mirrored(Vector x) {
  for (std::size_t c = 0; c + 1 < x.size(); c += 2) std::swap(x[c], x[c + 1]);
  return x;
}

Evidence transposed_matrix(Lab& lab) {
  const Plan plan = lab.rope(128, {.pairing = Pairing::interleaved});
  const Vector q = lab.normals(128), k = lab.normals(128);
  const auto there = [&](const Vector& x, std::int64_t p) { return lab.rotated(plan, x, p); };
  const auto back = [&](const Vector& x, std::int64_t p) {
    return lab.rotated(plan, x, p, Way::inverse);
  };
  const double ours = dot(there(q, 11), there(k, 4)), theirs = dot(back(q, 11), back(k, 4));
  const double shifted = dot(back(q, 111), back(k, 104));
  const double mirror = dot(back(mirrored(q), 11), back(mirrored(k), 4));
  const double mixed = dot(there(q, 11), back(k, 4));
  const double mixed_shifted = dot(there(q, 111), back(k, 104));
  return found(
      say("d = 128, m = 11, n = 4: RoFormer's matrix gives the score ", ours, ", its transpose ",
          theirs, ", and ", mirror,
          " once the two channels of each pair are exchanged. Queries by one and keys by the "
          "other: ",
          mixed, ", and ", mixed_shifted, " for the same offset 100 tokens later."),
      {outside("| transpose's score − RoFormer's |", std::abs(theirs - ours), 1e-9),
       inside("the transpose's change when both move by 100", std::abs(theirs - shifted), 1e-11),
       inside("its difference from RoFormer's with channels exchanged", std::abs(mirror - ours),
              1e-11),
       outside("change of the mixture when both move by 100", std::abs(mixed - mixed_shifted),
               1e-9)});
}

Evidence widget(Lab& lab) {
  const Plan plan = lab.rope(2, {.scaling = Explicit{.frequencies = {pi / 4}}});
  const Vector turned = lab.rotated(plan, {1, 0}, 1);
  const double c = std::cos(pi / 4), s = std::sin(pi / 4);
  const Vector read_by_rows{c, -s};  // [[c, s], [−s, c]]·(1, 0)
  return found(
      say("Turning (1, 0) by 45° gives (", turned[0], ", ", turned[1],
          "), as shown; the matrix as printed, read row by row, gives (", read_by_rows[0], ", ",
          read_by_rows[1], ")."),
      {outside("distance of the printed matrix's product", distance(turned, read_by_rows), 0.1),
       inside("distance of ours to (cos 45°, sin 45°)", distance(turned, Vector{c, s}), rounding)});
}

Evidence frequency_from_one(Lab& lab) {
  const Plan plan = lab.rope(128);
  const double ours = plan.rotate->at(0, 0, 0), theirs = std::pow(10000, -2.0 / 128);
  double shifted = 0;  // counted from 1, the series is RoFormer's less its first term
  for (std::int64_t r = 1; r < 64; ++r)
    shifted = std::max(shifted, std::abs(plan.rotate->at(0, 0, r) -
                                         std::pow(10000, -2.0 * static_cast<double>(r) / 128)));
  return found(say("d = 128: the first pair rotates by ", ours,
                   " rad a position; the formula counted from 1 gives ", theirs,
                   ", which belongs to the second."),
               {outside("| first frequency − 10000^(−2/d) |", std::abs(ours - theirs), 0.01),
                inside("largest | θ_r − 10000^(−2r/d) |, r from 0", shifted, rounding)});
}

Evidence position_zero(Lab& lab) {
  const Plan plan = lab.rope(128);
  const Vector x = lab.normals(128);
  const double at_zero = distance(lab.rotated(plan, x, 0), x);
  const double at_one = distance(lab.rotated(plan, x, 1), x);
  return found(
      say("d = 128: at position 0 a vector stays where it is; counted from 1 the first token's has "
          "moved by ",
          at_one, " of its length ", norm(x), "."),
      {outside("what the row called 0 moves", at_one, rounding),
       inside("what position 0 moves", at_zero, 0)});
}

Evidence query_size(Lab& lab) {
  const Plan plan = lab.rope(64);
  std::int64_t accepted = 0, of_length = 0;
  for (const std::int64_t length : {1, 7, 300}) {
    const auto rotates = [&](std::int64_t channels) {
      Matrix x = lab.normal_rows(length, channels);
      const Tensor q = Tensor::dense(x.values.data(), {1, 1, length, channels});
      return rotate(plan, q, Positions::range(0, length), Side::query, q).has_value();
    };
    accepted += rotates(64);
    of_length += length < 64 && rotates(length);
  }
  return found(
      say("A rotation of head_dim 64 takes queries of 64 channels in texts of 1, 7 and 300 "
          "tokens (",
          accepted, " of 3), and of the two texts shorter than that none with L channels (",
          of_length, " of 2)."),
      {inside("texts whose queries of L channels fit", static_cast<double>(of_length), 0),
       inside("texts whose queries of 64 channels do not fit", static_cast<double>(3 - accepted),
              0)});
}

Evidence square_root(Lab& lab) {
  const Plan plan = lab.plan(NoPe{}, {.head_dim = 64});
  const Matrix q = lab.normal_rows(1, 64), k = lab.normal_rows(1, 64);
  const double logit = lab.attend(plan, q, k, k, Positions::range(0, 1)).logits(0, 0);
  const double product = dot(q.values, k.values);
  const double divisor = product / logit;
  return found(say("head_dim 64 in a model of 8 heads and width 512: the logit is q·k divided by ",
                   divisor, " = √64; √512 would be ", std::sqrt(512.0), "."),
               {outside("| divisor − √width |", std::abs(divisor - std::sqrt(512.0)), 1),
                inside("| divisor − √head_dim |", std::abs(divisor - 8), rounding)});
}

constexpr Claim claims[] = {
    {12, 'a', group, "A rotation keeps lengths", "S0 S1 S3", Verdict::right, "True at any position",
     "‖Rx‖ = ‖x‖", roformer, "rotate() with Rope{} at head_dim 128", run<isometry>},
    {12, 'b', group, "Rotations compose by adding angles", "S0", Verdict::right,
     "True: positions add", "R(a)·R(b) = R(a + b)", roformer,
     "rotate() twice, at 300 and 712, against once at 1012", run<composition>},
    {12, 'c', group, "A rotation is undone by its transpose, the rotation by −φ", "S0",
     Verdict::right, "True", "R(φ)⁻¹ = R(−φ) = R(φ)ᵀ", roformer, "rotate_inverse() after rotate()",
     run<inverse>},
    {13, 'a', group, "R_mᵀ·R_n = R_{m−n}", "S0", Verdict::wrong,
     "The sign is the other one, as the same text has it further down", "R_mᵀ·R_n = R_{n−m}",
     roformer, "rotate() of q at 11 and k at 4, against k alone at −7", run<sign>},
    {13, 'b', group, "R_mᵀ·R_n = R_{n−m}", "S0 S2", Verdict::right, "True", "R_mᵀ·R_n = R_{n−m}",
     roformer, "rotate() of q and k, against rotate() or rotate_inverse() of k alone",
     run<right_sign>},
    {14, 'a', group, "RoPE's matrix is [[cos, sin], [−sin, cos]]", "S2", Verdict::sloppy,
     "That is the inverse of RoFormer's: as good if q, k and the trained weights share it, never "
     "mixed",
     "R(φ) = [[cos φ, −sin φ], [sin φ, cos φ]]", roformer,
     "rotate_inverse() of q and k, against rotate() of both with each pair's channels exchanged",
     run<transposed_matrix>},
    {14, 'b', group, "The figure's matrix takes (1, 0) to (0.71, 0.71)", "S0", Verdict::wrong,
     "Read row by row it is the transpose, and takes (1, 0) to (0.71, −0.71)",
     "R(45°) = [[0.71, −0.71], [0.71, 0.71]]", roformer,
     "rotate() of (1, 0) at position 1 with Explicit{.frequencies = {π/4}}", run<widget>},
    {17, 'a', group, "θ_i = 10000^(−2i/d) with i from 1 to d/2", "S3", Verdict::wrong,
     "i runs from 0, or the exponent is −2(i − 1)/d: the first pair rotates by 1 rad a position",
     "θ_i = 10000^(−2(i−1)/d), i = 1 … d/2", roformer,
     "rope_frequencies<double>(Rope{}, {.head_dim = 128})", run<frequency_from_one>},
    {17, 'b', group, "The row for position 0 of a table whose positions start at 1", "S3",
     Verdict::wrong,
     "Its row 0 is rotated by position 1; scores survive, since all rows move together", "R_0 = 1",
     roformer, "rotate() at positions 0 and 1", run<position_zero>},
    {18, 'a', group, "Queries and keys are vectors of length L, the number of tokens", "S3",
     Verdict::wrong, "They have head_dim channels, whatever L is", "q_m ∈ R^head_dim", roformer,
     "rotate() of [L, 64] for several L", run<query_size>},
    {18, 'b', group, "Logits are divided by the root of the embedding's width", "S3",
     Verdict::wrong, "By the root of a head's width", "q·k/√head_dim", "1706.03762",
     "attend_reference() with NoPe{}, head_dim 64: the logits it returns", run<square_root>},
};

}  // namespace of_rotation

std::span<const Claim> rotation_claims() { return of_rotation::claims; }

}  // namespace posenc::detail
