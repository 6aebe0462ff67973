// What attention sees of position: the offset between two tokens, and how scores behave with it.
#include <algorithm>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_distance {

constexpr std::string_view group = "scores and offsets";
constexpr std::string_view roformer = "2104.09864";

// Largest change of a score of one query and key when both move.
double shift_change(Lab& lab, const Plan& plan, const Vector& q, const Vector& k) {
  const double at_home = lab.score(plan, q, k, 11, 4);
  double most = 0;
  for (const std::int64_t by : {1, 100, 5000})
    most = std::max(most, std::abs(lab.score(plan, q, k, 11 + by, 4 + by) - at_home));
  return most;
}

Evidence arccosine(Lab& lab) {
  const Matrix rows = lab.vectors(lab.plan(Sinusoidal{}, {.width = 64}), lab.ids({40, 23}));
  const Vector f = lab.frequencies(64);
  double identity = 0, angle = 0;
  for (std::int64_t r = 0; r < 32; ++r) {
    const double w = f[static_cast<std::size_t>(r)];
    const double product =
        rows(0, 2 * r) * rows(1, 2 * r) + rows(0, 2 * r + 1) * rows(1, 2 * r + 1);
    identity = std::max(identity, std::abs(product - std::cos(17 * w)));
    angle = std::max(angle, std::abs(std::acos(std::clamp(product, -1.0, 1.0)) -
                                     std::abs(std::remainder(17 * w, 2 * pi))));
  }
  const double fast = std::acos(rows(0, 0) * rows(1, 0) + rows(0, 1) * rows(1, 1));
  const bool undefined = std::isnan(std::acos(17.0));
  return found(
      say("Positions 40 and 23: arccos(a − b) = arccos 17 does not exist; the arccosine of the "
          "fastest pair's dot product is ",
          fast,
          ", which is 17 rad folded into [0, π], its sign "
          "lost."),
      {outside("arccos 17 is not a number (1: yes)", undefined ? 1 : 0, 0),
       inside("largest | arccos(dot) − |ω(a−b)| mod 2π |", angle, 1e-7),
       inside("largest | dot − cos ω(a−b) |", identity, rounding)});
}

Evidence product_identity(Lab& lab) {
  const Matrix rows = lab.table(64, 200);
  const Vector f = lab.frequencies(64);
  double most = 0;
  for (std::int64_t a = 0; a < 200; a += 7)
    for (std::int64_t b = 0; b < 200; b += 11)
      for (std::int64_t r = 0; r < 32; ++r)
        most = std::max(
            most,
            std::abs(rows(a, 2 * r) * rows(b, 2 * r) + rows(a, 2 * r + 1) * rows(b, 2 * r + 1) -
                     std::cos(static_cast<double>(a - b) * f[static_cast<std::size_t>(r)])));
  return found(
      "d = 64, positions up to 200: every pair's dot product is the cosine of ω times the offset.",
      {inside("largest | sin a sin b + cos a cos b − cos(a − b) |", most, rounding)});
}

Evidence offset_alone(Lab& lab) {
  const Vector q = lab.normals(128), k = lab.normals(128);
  double most = shift_change(lab, lab.rope(128), q, k);
  most = std::max(most, shift_change(lab, lab.rope(128, {.pairing = Pairing::interleaved}), q, k));
  // A phase on one side: RoPE++'s imaginary heads, and PoPE's keys.
  const Plan imaginary = lab.rope(128, {.imaginary_heads = ImaginaryHeads::all});
  const Plan polar = lab.plan(Pope{.phases = Vector(128, -1)}, {.heads = 1, .head_dim = 128});
  const double phased =
      std::max(shift_change(lab, imaginary, q, k), shift_change(lab, polar, q, k));
  // Mixtures of cosines near the identity, which FoPE begins with.
  const std::int64_t kept = 16;
  Vector cosines = lab.normals(kept * kept), sines = lab.normals(kept * kept);
  for (std::int64_t i = 0; i < kept * kept; ++i)
    for (Vector* const each : {&cosines, &sines})
      (*each)[static_cast<std::size_t>(i)] =
          0.1 * (*each)[static_cast<std::size_t>(i)] + (i % (kept + 1) == 0 ? 1 : 0);
  const Plan mixed = lab.plan(Fope{.num_inv_freq = kept, .cos_coef = cosines, .sin_coef = sines},
                              {.heads = 1, .head_dim = 128});
  const double of_mixtures = shift_change(lab, mixed, q, k);
  return found(
      say("d = 128, a random query at 11 and key at 4: the score ",
          lab.score(lab.rope(128), q, k, 11, 4),
          " stays when both move by 1, 100 or 5,000. So do those of RoPE++'s imaginary heads, ",
          lab.score(imaginary, q, k, 11, 4), ", and PoPE's, ", lab.score(polar, q, k, 11, 4),
          ", whose queries or keys have a phase. FoPE's, whose cosines are mixtures of 16 "
          "frequencies, does not: it changes by ",
          of_mixtures, "."),
      {inside("largest change of the score", most, 1e-10),
       inside("largest change of the two with a phase", phased, 1e-10),
       outside("largest change of FoPE's", of_mixtures, 1e-3)});
}

Evidence not_invariant(Lab& lab) {
  const std::int64_t length = 16, dim = 32;
  const Plan plan = lab.rope(dim);
  const Matrix x = lab.normal_rows(length, dim);
  Matrix tail(length - 1, dim, Vector(x.values.begin() + dim, x.values.end()));
  const Matrix all = lab.attend(plan, x, x, x, Positions::range(0, length), {}).out;
  const Matrix cut = lab.attend(plan, tail, tail, tail, Positions::range(0, length - 1), {}).out;
  const double moved = distance(all.row(length - 1), cut.row(length - 2));

  Vector q = lab.normals(128), k = lab.normals(128);
  const Plan wide = lab.rope(128);
  const auto rounded_score = [&](std::int64_t m, std::int64_t n) {
    const auto stored = [&](const Vector& v, std::int64_t p) {
      Vector y = lab.rotated(wide, v, p);
      for (double& c : y) c = bfloat16_to_float(double_to_bfloat16(c));
      return y;
    };
    return dot(stored(q, m), stored(k, n));
  };
  const double rounded =
      std::abs(rounded_score(11, 4) - rounded_score(1011, 1004)) / (norm(q) * norm(k));
  return found(
      say("RoPE, 16 tokens, causal: the last token's output moves by ", moved,
          " when the first token is cut off, though every offset is kept. With rotated q and k "
          "stored in bfloat16 a shift by 1,000 changes the score by ",
          rounded, " of ‖q‖·‖k‖."),
      {outside("change of the output when the text loses its first token", moved, 1e-3),
       outside("change of a bfloat16 score by a shift, over ‖q‖·‖k‖", rounded, 1e-6)});
}

Evidence relative_family(Lab& lab) {
  const Vector q = lab.normals(64), k = lab.normals(64);
  Vector keys = lab.normals(33 * 64), buckets = lab.normals(32);
  Shaw shaw{.max_distance = 16, .use_values = false};
  shaw.key = Table::borrow(Tensor::dense(keys.data(), {33, 64}));
  T5 t5;
  t5.table = Table::borrow(Tensor::dense(buckets.data(), {32, 1}));
  const Geometry one{.heads = 1, .kv_heads = 1, .head_dim = 64};
  double most = 0;
  for (const Scheme& scheme : {Scheme{shaw}, Scheme{t5}, Scheme{Alibi{}}, Scheme{Rope{}}})
    most = std::max(most, shift_change(lab, lab.plan(scheme, one), q, k));
  return found(
      "Shaw, T5, ALiBi and RoPE: the score of a query at 11 and a key at 4 stays when both move "
      "by 1, 100 or 5,000.",
      {inside("largest change of the score over the four", most, 1e-10)});
}

Evidence playground_score(Lab& lab) {
  const Plan plan = lab.rope(2);
  const double score = lab.score(plan, {1, 0}, {1, 0}, 5, 2);
  return found(
      say("q = k = (1, 0), frequency 1, distance 3: the score is ", score, " = cos 3."),
      {inside("| score − cos 3 |", std::abs(score - std::cos(3.0)), rounding),
       inside("| score + 0.990 |, as shown to three digits", std::abs(score + 0.990), 5e-4),
       inside("change when both move", shift_change(lab, plan, {1, 0}, {1, 0}), rounding)});
}

Evidence bare_index(Lab& lab) {
  const Plan plan = lab.plan(Index{}, {.width = 16});
  Vector x = lab.normals(16), y = lab.normals(16);
  const auto product = [&](std::int64_t m, std::int64_t n) {
    const Matrix rows = lab.vectors(plan, lab.ids({m, n}));
    Vector a = x, b = y;
    for (std::size_t c = 0; c < 16; ++c) {
      a[c] += rows(0, static_cast<std::int64_t>(c));
      b[c] += rows(1, static_cast<std::int64_t>(c));
    }
    return dot(a, b);
  };
  const double first = product(11, 4), later = product(111, 104);
  return found(say("The index added in one channel: the dot product of two tokens at 11 and 4 is ",
                   first, ", at 111 and 104 ", later, "."),
               {outside("change by a shift of 100", std::abs(later - first), 1)});
}

Evidence content_turns_too(Lab& lab) {
  const Plan plan = lab.rope(2);
  const auto phase = [&](const Vector& x) {
    const Vector y = lab.rotated(plan, x, 2);
    return std::atan2(y[1], y[0]);
  };
  const double a = phase({1, 0}), b = phase({0, 1});
  const double near = lab.score(plan, {1, 0}, {1, 0}, 0, 0);
  const double far = lab.score(plan, {1, 0}, {1, 0}, 3, 0);
  // A channel of PoPE, of frequency 1: what the query says scales the score alike at any distance.
  const Plan polar = lab.plan(Pope{}, {.heads = 1, .head_dim = 1});
  const auto share = [&](double x) {
    return lab.score(polar, {x}, {1}, 2, 0) / lab.score(polar, {x}, {1}, 0, 0);
  };
  const double off =
      std::max(std::abs(share(-2) - std::cos(2.0)), std::abs(share(3) - std::cos(2.0)));
  return found(
      say("Two tokens of length 1 at position 2 have the phases ", a, " and ", b,
          " rad: position added 2 to each. With the same lengths and content the score is ", near,
          " at distance 0 and ", far,
          " at 3. A channel of PoPE has at distance 2 the share cos 2 = ", share(-2),
          " of its score at 0, whatever the query says."),
      {outside("| difference of the two phases |", std::abs(b - a), rounding),
       inside("| phase − (content + position) |", std::abs(a - 2), rounding),
       outside("change of the score at one length", near - far, 1),
       inside("| PoPE's share − cos 2 |", off, rounding)});
}

Evidence no_monotone_decay(Lab& lab) {
  const Plan plan = lab.rope(128);
  const Matrix ones(1001, 128, Vector(1001 * 128, 1.0));
  const Matrix keys = lab.rotated(plan, ones, Positions::range(0, 1001));
  const Vector query = ones.row(0);
  std::int64_t rises = 0;
  for (std::int64_t k = 1; k <= 1000; ++k)
    rises += dot(query, keys.row(k)) > dot(query, keys.row(k - 1));
  return found(say("d = 128, q = k = 1: of the 1,000 steps away from the query, ", rises,
                   " raise the score."),
               {outside("steps that raise the score", static_cast<double>(rises), 0)});
}

Evidence sines_without_partners(Lab& lab) {
  const Matrix rows = lab.table(64, 8);
  Vector zero, seven, whole_zero = rows.row(0);
  for (std::int64_t c = 0; c < 64; c += 2) {
    zero.push_back(rows(0, c));
    seven.push_back(rows(7, c));
  }
  return found(
      say("32 sines of different frequencies without their cosines: PE(0) is all zero, and any "
          "matrix takes it to zero, but PE(7) has the norm ",
          norm(seven), "."),
      {outside("‖PE(7) − M·PE(0)‖ for every matrix M", norm(seven) - norm(zero), 0.1),
       outside("‖PE(0)‖ with the cosines", norm(whole_zero), 0.1)});
}

Evidence mixed_layouts(Lab& lab) {
  const Plan halves = lab.rope(128), pairs = lab.rope(128, {.pairing = Pairing::interleaved});
  const Vector q = lab.normals(128), k = lab.normals(128);
  const auto score = [&](std::int64_t m, std::int64_t n) {
    return dot(lab.rotated(halves, q, m), lab.rotated(pairs, k, n));
  };
  const double first = score(11, 4), later = score(111, 104);
  return found(
      say("d = 128, the query paired by halves, the key interleaved: the score at 11 and 4 is ",
          first, ", at 111 and 104 ", later, "."),
      {outside("change by a shift of 100", std::abs(later - first), 1e-3)});
}

Evidence multiplies(Lab& lab) {
  const Vector q = lab.normals(64), k = lab.normals(64);
  Vector twice = q;
  for (double& x : twice) x *= 2;
  const Plan none = lab.plan(NoPe{}), rope = lab.rope(64);
  const Plan alibi = lab.plan(Alibi{}, {.heads = 1});
  const auto effect = [&](const Plan& plan, const Vector& query) {
    return lab.score(plan, query, k, 11, 4) - lab.score(none, query, k, 11, 4);
  };
  const double turned = effect(rope, twice) / effect(rope, q);
  const double added = effect(alibi, twice) / effect(alibi, q);
  return found(say("A query twice as long: what RoPE does to the score grows ", turned,
                   " times, what ALiBi does ", added, " times."),
               {outside("RoPE's factor − 1, which a bias would have", std::abs(turned - 1), 0.5),
                inside("RoPE's factor − 2", std::abs(turned - 2), 1e-9),
                inside("ALiBi's factor − 1", std::abs(added - 1), 1e-9)});
}

constexpr Claim claims[] = {
    {10, 'a', group, "sin a sin b + cos a cos b = cos(a − b)", "S2", Verdict::right,
     "True of every pair, so its dot product knows the offset alone",
     "PE_r(a)·PE_r(b) = cos ω_r(a − b)", "1706.03762",
     "posenc table pe.npy --scheme sinusoidal --width 64 --positions 0:200 --dtype float64",
     run<product_identity>},
    {10, 'b', group, "arccos(a − b) recovers the distance, up to turns", "S2", Verdict::wrong,
     "The arccosine of the dot product does, up to turns and to the sign",
     "arccos(PE_r(a)·PE_r(b)) = ±ω_r(a − b) mod 2π", "1706.03762",
     "posenc table pe.npy --scheme sinusoidal --width 64 --positions 40,23 --dtype float64",
     run<arccosine>},
    {15, 'a', group, "With RoPE a score depends on the offset of two tokens alone",
     "S0 S1 S2 S3 S4", Verdict::right,
     "True exactly, in either pairing and with a phase on one side; FoPE's mixtures give it up",
     "(R_m q)·(R_n k) = q·R_{n−m} k", roformer,
     "attend_reference() with Rope{}, Pope{} and Fope{}: the logits it returns", run<offset_alone>},
    {15, 'b', group, "RoPE makes the model translation-invariant", "S0", Verdict::sloppy,
     "Its scores are; the model is not: the mask, the first token and 16-bit storage see the place",
     "", roformer, "attend_reference() of 16 tokens and of the last 15, causal",
     run<not_invariant>},
    {15, 'c', group, "Shaw, T5, ALiBi and RoPE all act by the offset i − j", "S0 S4",
     Verdict::right, "True of all four", "", "1803.02155",
     "attend_reference() with each, both positions moved", run<relative_family>},
    {15, 'd', group, "At distance 3 and frequency 1 the playground's score is −0.990", "S0",
     Verdict::right, "True for q = k = (1, 0), wherever the two stand", "cos 3 = −0.98999",
     roformer, "attend_reference() with Rope{}, head_dim 2, positions 5 and 2",
     run<playground_score>},
    {15, 'e', group, "With the bare index as a channel a shift changes every dot product", "S2",
     Verdict::right, "True: the index enters squared", "x·y + … + m·n", "",
     "posenc table pe.npy --scheme index --width 16 --positions 11,4", run<bare_index>},
    {16, 'a', group, "Length carries content and the angle carries position alone", "S3",
     Verdict::wrong,
     "The angle is content plus position, content is in both; PoPE was made so that it holds",
     "phase(R_p x) = phase(x) + pθ", roformer, "rotate() of (1, 0) and (0, 1) at position 2",
     run<content_turns_too>},
    {16, 'b', group, "The nearer two tokens, the higher their score", "S3", Verdict::wrong,
     "An upper bound decays; the score itself oscillates", "Σ_r cos(kθ_r) for q = k = 1", roformer,
     "rotate() of ones at positions 0:1001", run<no_monotone_decay>},
    {30, 'a', group, "Sines without their cosines lose the map between positions", "S4",
     Verdict::right, "True: no matrix takes the zero vector of position 0 anywhere",
     "PE(0) = 0, PE(k) ≠ 0", "1706.03762",
     "posenc table pe.npy --scheme sinusoidal --width 64 --positions 0,7 --dtype float64",
     run<sines_without_partners>},
    {30, 'b', group, "Pairs that do not match break relative attention", "S4", Verdict::right,
     "True: so does a query paired by halves against an interleaved key", "", roformer,
     "rotate() of q with Pairing::halves and of k with Pairing::interleaved", run<mixed_layouts>},
    {41, 'e', group, "Relative schemes, RoPE among them, modify the score by a bias", "S0",
     Verdict::sloppy, "ALiBi and T5 add; RoPE multiplies, so its effect grows with q and k",
     "q·R_{n−m} k against q·k + b(m − n)", roformer,
     "attend_reference() with Rope{} and Alibi{}, q and 2q", run<multiplies>},
};

}  // namespace of_distance

std::span<const Claim> distance_claims() { return of_distance::claims; }

}  // namespace posenc::detail
