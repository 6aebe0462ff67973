// Attention itself: what it sees without position, through a mask, and on the values.
#include <algorithm>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_attention {

constexpr std::string_view group = "attention";
constexpr std::int64_t dim = 16;

Matrix permuted(const Matrix& x, std::span<const std::int64_t> order) {
  Matrix out(static_cast<std::int64_t>(order.size()), x.columns);
  for (std::int64_t r = 0; r < out.rows; ++r)
    for (std::int64_t c = 0; c < x.columns; ++c)
      out(r, c) = x(order[static_cast<std::size_t>(r)], c);
  return out;
}

// Self-attention of one head with its input as query, key and value.
Matrix attended(Lab& lab, const Plan& plan, const Matrix& x, bool causal) {
  return lab.attend(plan, x, x, x, Positions::range(0, x.rows), {.causal = causal}).out;
}

// "the dog bit the man" and, by `order`, "the man bit the dog".
struct Sentences {
  Matrix first, second;
  std::vector<std::int64_t> order{0, 4, 2, 3, 1};
};
Sentences sentences(Lab& lab) {
  const Matrix words = lab.normal_rows(4, dim);  // the, dog, bit, man
  const std::int64_t tokens[] = {0, 1, 2, 0, 3};
  Sentences s;
  s.first = permuted(words, tokens);
  s.second = permuted(s.first, s.order);
  return s;
}

Evidence equivariant(Lab& lab) {
  const Plan none = lab.plan(NoPe{});
  const Matrix x = lab.normal_rows(7, dim);
  const std::int64_t order[] = {3, 0, 6, 1, 5, 2, 4};
  const Matrix out = attended(lab, none, permuted(x, order), false);
  const double off =
      largest_difference(out.values, permuted(attended(lab, none, x, false), order).values);
  return found(
      "7 tokens without position and mask: attention of the shuffled tokens is the shuffled "
      "attention.",
      {inside("largest |attend(shuffled) − shuffled(attend)|", off, rounding)});
}

Evidence not_invariant(Lab& lab) {
  const Plan none = lab.plan(NoPe{});
  const Matrix x = lab.normal_rows(7, dim);
  const std::int64_t order[] = {3, 0, 6, 1, 5, 2, 4};
  const Matrix home = attended(lab, none, x, false);
  const Matrix out = attended(lab, none, permuted(x, order), false);
  const double moved = largest_difference(out.values, home.values);
  return found(say("7 shuffled tokens: the output is not the same matrix (it differs by ", moved,
                   "), but the same rows in the new order."),
               {outside("largest change of the output, in place", moved, 1e-3),
                inside("largest change of each token's own row",
                       largest_difference(out.values, permuted(home, order).values), rounding)});
}

Evidence same_words(Lab& lab) {
  const Plan none = lab.plan(NoPe{});
  const Sentences s = sentences(lab);
  const auto change = [&](bool causal) {
    return largest_difference(permuted(attended(lab, none, s.first, causal), s.order).values,
                              attended(lab, none, s.second, causal).values);
  };
  return found(
      say("Five words in both orders, no position: each word's output is the same without a mask, "
          "and differs by up to ",
          change(true), " under a causal one."),
      {inside("largest change without a mask", change(false), rounding),
       outside("largest change under a causal mask", change(true), 1e-3)});
}

Evidence context_counts(Lab& lab) {
  const Plan none = lab.plan(NoPe{});
  Matrix x = lab.normal_rows(7, dim);
  const Vector before = attended(lab, none, x, false).row(2);
  for (std::int64_t c = 0; c < dim; ++c) x(5, c) = lab.normal();
  const double change = distance(attended(lab, none, x, false).row(2), before);
  return found(
      say("7 tokens without position: another word as token 5 moves the output of token 2 by ",
          change, "."),
      {outside("change of a token's output by its context", change, 1e-3)});
}

Evidence mask_tells_order(Lab& lab) {
  const Plan none = lab.plan(NoPe{});
  const std::int64_t length = 64;
  const Matrix zero(length, dim);
  Matrix first(length, dim);
  first(0, 0) = 1;  // the value marks the first token; all logits are equal
  const Matrix out =
      lab.attend(none, zero, zero, first, Positions::range(0, length), {.causal = true}).out;
  double off = 0;
  for (std::int64_t p = 0; p < length; ++p)
    off = std::max(off, std::abs(1 / out(p, 0) - static_cast<double>(p + 1)));
  const Matrix open = lab.attend(none, zero, zero, first, Positions::range(0, length)).out;
  return found(
      say("A causal head with equal logits and a value that marks the first token gives 1/(p + 1): "
          "the position itself, for all ",
          length, " tokens. Without the mask all get ", open(0, 0), "."),
      {inside("largest | 1/output − (p + 1) |", off, 1e-11),
       inside("spread of the output without a mask", std::abs(open(0, 0) - open(63, 0)), 0)});
}

Evidence embedding_scale(Lab& lab) {
  const std::int64_t d = 512;
  const Vector small = lab.normals(d, 1 / std::sqrt(512.0)), unit = lab.normals(d);
  const Plan plan = lab.plan(Sinusoidal{.scale_embedding = true}, {.width = d});
  const double position = norm(lab.vectors(plan, Positions::range(9, 1)).row(0));
  const double scale = plan.add->embedding_scale;
  const double scaled = scale * norm(small) / position, plain = norm(small) / position;
  const double too_much = scale * norm(unit) / position;
  return found(say("d = 512, token norm over position norm: embeddings drawn from N(0, 1/d) have ",
                   plain, ", times √d ", scaled, "; those drawn from N(0, 1) have ",
                   norm(unit) / position, " and would have ", too_much, "."),
               {inside("| ln ratio | of N(0, 1/d) times √d", std::abs(std::log(scaled)), 1),
                outside("| ln ratio | of N(0, 1/d) as it is", std::abs(std::log(plain)), 1),
                outside("| ln ratio | of N(0, 1) times √d", std::abs(std::log(too_much)), 1)});
}

// Output of 6 tokens' attention, values and outputs turned as `plan` says, at positions from
// `first`.
Matrix values_turned(Lab& lab, const Plan& plan, const Matrix& q, const Matrix& k, const Matrix& v,
                     std::int64_t first) {
  return lab.attend(plan, q, k, v, Positions::range(first, q.rows)).out;
}

Evidence rotated_values(Lab& lab) {
  const Plan plan = lab.rope(dim);
  const Matrix q = lab.normal_rows(6, dim), k = lab.normal_rows(6, dim),
               v = lab.normal_rows(6, dim);
  const auto out = [&](std::int64_t first) {
    const Positions positions = Positions::range(first, 6);
    return lab.attend(plan, q, k, lab.rotated(plan, v, positions), positions).out;
  };
  const double change = largest_difference(out(0).values, out(100).values);
  return found(say("RoPE on the values and nothing more: the outputs of 6 tokens change by up to ",
                   change, " when all move by 100."),
               {outside("largest change of the output by a shift", change, 1e-3)});
}

Evidence values_rotated_back(Lab& lab) {
  const Plan plan = lab.rope(dim, {.rotate_values = true}), plain = lab.rope(dim);
  const Matrix q = lab.normal_rows(6, dim), k = lab.normal_rows(6, dim),
               v = lab.normal_rows(6, dim);
  const Matrix out = values_turned(lab, plan, q, k, v, 0);
  const double change =
      largest_difference(out.values, values_turned(lab, plan, q, k, v, 100).values);
  // Σ_j α_ij R_{j−i} v_j, with α from the logits of plain RoPE.
  const Matrix logits = lab.attend(plain, q, k, v, Positions::range(0, 6)).logits;
  Matrix expected(6, dim);
  for (std::int64_t i = 0; i < 6; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < 6; ++j) sum += std::exp(logits(i, j));
    for (std::int64_t j = 0; j < 6; ++j) {
      const Vector turned =
          lab.rotated(plain, v.row(j), std::abs(j - i), j < i ? Way::inverse : Way::forward);
      for (std::int64_t c = 0; c < dim; ++c)
        expected(i, c) += std::exp(logits(i, j)) / sum * turned[static_cast<std::size_t>(c)];
    }
  }
  return found(
      "RoPE on the values with the output rotated back: outputs stay when all tokens move by 100, "
      "and are Σ α_ij·R_{j−i}·v_j.",
      {inside("largest change of the output by a shift", change, 1e-11),
       inside("largest | output − Σ α_ij R_{j−i} v_j |",
              largest_difference(out.values, expected.values), 1e-11)});
}

Evidence softmax_temperature(Lab& lab) {
  const double t = 0.7;
  Plan warm = lab.plan(NoPe{}), plain = lab.plan(NoPe{});
  warm.logits.multiplier = 1 / t;
  const Matrix q = lab.normal_rows(6, dim), k = lab.normal_rows(6, dim);
  Matrix one(6, dim, Vector(6 * dim, 1.0));  // the output is then the weights' sum
  const auto sum = [&](const Plan& plan) {
    return lab.attend(plan, q, k, one, Positions::range(0, 6)).out(0, 0);
  };
  const Matrix hot = lab.attend(warm, q, k, one, Positions::range(0, 6)).logits;
  const Matrix cold = lab.attend(plain, q, k, one, Positions::range(0, 6)).logits;
  double off = 0;
  for (std::size_t i = 0; i < hot.values.size(); ++i)
    off = std::max(off, std::abs(hot.values[i] - cold.values[i] / t));
  return found(say("t = 0.7: the weights of softmax(q·k/(t·√d)) sum to ", sum(warm),
                   "; divided by t after the softmax they sum to ", sum(plain) / t, "."),
               {outside("| sum of softmax(q·k)/t − 1 |", std::abs(sum(plain) / t - 1), 0.1),
                inside("| sum of softmax(q·k/(t√d)) − 1 |", std::abs(sum(warm) - 1), rounding),
                inside("largest | logit·t − q·k/√d |", off, rounding)});
}

constexpr Claim claims[] = {
    {21, 'a', group, "Self-attention is permutation-equivariant", "S4", Verdict::right,
     "True without position and without a mask", "attend(Px) = P·attend(x)", "1706.03762",
     "attend_reference() with NoPe{}, causal false, of shuffled tokens", run<equivariant>},
    {21, 'b', group, "Transformers are position-invariant by default", "S2", Verdict::sloppy,
     "Equivariant: the output's rows move with the tokens; what each token gets is invariant",
     "attend(Px) = P·attend(x), not attend(x)", "1706.03762",
     "attend_reference() with NoPe{}, causal false, of shuffled tokens", run<not_invariant>},
    {21, 'c', group, "Without position two orders of the same words look identical", "S2 S4",
     Verdict::sloppy, "Only without a mask: a causal mask tells them apart", "", "2203.16634",
     "attend_reference() with NoPe{}, causal true and false", run<same_words>},
    {21, 'd', group, "Without position a word's representation ignores the words around it", "S1",
     Verdict::wrong, "It ignores their order; which words they are counts", "", "1706.03762",
     "attend_reference() with NoPe{}, one token replaced", run<context_counts>},
    {22, 'a', group, "A causal model can learn positions from its mask alone", "S4", Verdict::right,
     "True by construction: one head that averages over the past gives 1/(p + 1)",
     "Σ_{j≤p} 1/(p+1)·[j = 0] = 1/(p + 1)", "2203.16634",
     "attend_reference() with NoPe{}, q = k = 0, causal", run<mask_tells_order>},
    {28, 'a', group, "Embeddings are multiplied by √d so that token and position are equally large",
     "S4", Verdict::sloppy,
     "True where embeddings begin as N(0, 1/d); drawn from N(0, 1) they must not be scaled",
     "‖x‖·√d ≈ √d against ‖PE‖ = √(d/2)", "1706.03762",
     "compile(Sinusoidal{.scale_embedding = true}, {.width = 512}), then add()",
     run<embedding_scale>},
    {29, 'a', group, "Rotated values corrupt what attention mixes", "S4", Verdict::right,
     "True of values rotated and left so: absolute positions leak into the output",
     "Σ α_ij R_j v_j moves with all positions", "2104.09864",
     "rotate() of v before attend_reference() with Rope{}", run<rotated_values>},
    {29, 'b', group, "RoPE must never touch the values", "S4", Verdict::wrong,
     "Rotated back at the query's position, the output is a valid relative encoding of the values",
     "R_iᵀ Σ α_ij R_j v_j = Σ α_ij R_{j−i} v_j", "2104.09864",
     "attend_reference() with Rope{.rotate_values = true}", run<values_rotated_back>},
    {37, 'a', group, "YaRN's attention is softmax(q·k)/(t·√d)", "S2", Verdict::wrong,
     "The temperature and the root stand inside: softmax(q·k/(t·√d))", "softmax(q·k/(t·√d))",
     "2309.00071", "attend_reference() with Plan::logits.multiplier = 1/t",
     run<softmax_temperature>},
};

}  // namespace of_attention

std::span<const Claim> attention_claims() { return of_attention::claims; }

}  // namespace posenc::detail
