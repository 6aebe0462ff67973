// Scalings that follow the length of the text, and what they mean for cached keys.
#include <algorithm>

#include "evidence/claims/shorthand.h"
#include "posenc/cache.h"

namespace posenc::detail {
namespace of_dynamic {

constexpr std::string_view group = "dynamic scaling and the cache";
constexpr std::string_view yarn_paper = "2309.00071";
constexpr std::int64_t dim = 128, trained = 2048;

Rope yarn(bool dynamic) {
  return {.scaling =
              Yarn{.factor = 4, .original_max_position_embeddings = trained, .dynamic = dynamic}};
}
Rope dynamic_ntk() {
  return {.scaling = DynamicNtk{.factor = 1, .max_position_embeddings = trained}};
}

Plan at_length(Lab& lab, const Rope& rope, std::int64_t length) {
  return lab.plan(rope, {.head_dim = dim, .length = length});
}
double change(const Plan& a, const Plan& b) {
  return largest_difference(a.rotate->frequencies.radians, b.rotate->frequencies.radians);
}

Evidence separate(Lab& lab) {
  const double fixed = change(at_length(lab, yarn(false), 2048), at_length(lab, yarn(false), 8192));
  const double moving = change(at_length(lab, yarn(true), 2048), at_length(lab, yarn(true), 8192));
  const double ntk =
      change(at_length(lab, dynamic_ntk(), 2048), at_length(lab, dynamic_ntk(), 8192));
  return found(say("From 2,048 to 8,192 tokens YaRN's frequencies change by ", fixed,
                   "; with dynamic scaling by ", moving, ", and dynamic NTK, which is no YaRN, by ",
                   ntk, "."),
               {inside("change of YaRN's frequencies with the length", fixed, 0),
                outside("change under dynamic YaRN", moving, rounding),
                outside("change under dynamic NTK, without YaRN", ntk, rounding)});
}

Evidence never_shrinks(Lab& lab) {
  const Plan unscaled = lab.rope(dim);
  const double below = change(at_length(lab, dynamic_ntk(), 512), unscaled);
  const double yarn_below = change(at_length(lab, yarn(true), 512), unscaled);
  const Vector squeezed =
      lab.take(rope_frequencies<double>(Rope{.scaling = Linear{.factor = 512.0 / trained}},
                                        {.head_dim = dim}))
          .frequency;
  return found(
      say("512 tokens, 2,048 trained: dynamic NTK and dynamic YaRN leave the frequencies alone "
          "(s = 1); s = 512/2,048 would turn the first pair by ",
          squeezed[0], " rad a position."),
      {outside("change of the first pair with s = length/L", std::abs(squeezed[0] - 1), rounding),
       inside("change of dynamic NTK below the trained length", below, 0),
       inside("change of dynamic YaRN below the trained length", yarn_below, rounding)});
}

// Keys of n tokens rotated for the length at which each came, under dynamic NTK.
struct Cache {
  Matrix keys, stale,
      fresh;  // as projected; rotated by the trained length's plan; by the new one's
};
Cache cache(Lab& lab, std::int64_t n) {
  Cache c{lab.normal_rows(n, dim), {}, {}};
  c.stale = lab.rotated(at_length(lab, dynamic_ntk(), trained), c.keys, Positions::range(0, n));
  c.fresh = lab.rotated(at_length(lab, dynamic_ntk(), 4 * trained), c.keys, Positions::range(0, n));
  return c;
}

Evidence rerotated(Lab& lab) {
  const std::int64_t n = 512;
  const Cache c = cache(lab, n);
  Plan turn = at_length(lab, dynamic_ntk(), 4 * trained);
  const Plan before = at_length(lab, dynamic_ntk(), trained);
  for (std::size_t r = 0; r < turn.rotate->frequencies.radians.size(); ++r)
    turn.rotate->frequencies.radians[r] -= before.rotate->frequencies.radians[r];
  turn.valid.reset();
  const Matrix mended = lab.rotated(turn, c.stale, Positions::range(0, n));
  return found(
      "512 rotated keys of a text that grew from 2,048 to 8,192 tokens under dynamic NTK: turned "
      "once more by n·(θ′ − θ) they are the keys rotated anew.",
      {inside("largest | re-rotated key − key rotated anew |",
              largest_difference(mended.values, c.fresh.values), 1e-11),
       outside("largest difference before the turn",
               largest_difference(c.stale.values, c.fresh.values), 0.1)});
}

Evidence same_memory(Lab& lab) {
  const Cache c = cache(lab, 64);
  const auto bytes = [](const Matrix& x) { return x.values.size() * sizeof(double); };
  const std::int64_t pairs = dim / 2;
  return found(
      say("A key takes ", static_cast<std::int64_t>(bytes(c.keys)) / 64,
          " bytes here rotated or not; "
          "what unrotated storage costs is ",
          6 * pairs, " operations a cached key whenever it is read."),
      {inside("| bytes rotated − bytes unrotated |",
              std::abs(static_cast<double>(bytes(c.stale)) - static_cast<double>(bytes(c.keys))),
              0)});
}

Evidence stale_cache(Lab& lab) {
  const Cache c = cache(lab, 512);
  const Plan now = at_length(lab, dynamic_ntk(), 4 * trained);
  const Vector q = lab.normals(dim), query = lab.rotated(now, q, 600);
  double most = 0, sum = 0, size = 0;
  for (std::int64_t j = 0; j < 512; ++j) {
    const double right = dot(query, c.fresh.row(j)), stale = dot(query, c.stale.row(j));
    most = std::max(most, std::abs(stale - right));
    sum += (stale - right) * (stale - right);
    size += right * right;
  }
  return found(
      say("A new query against 512 keys rotated for the shorter text: the logits are off by ",
          std::sqrt(sum / size), " of their size on average, at most ",
          most / std::sqrt(static_cast<double>(dim)), "."),
      {outside("relative error of the logits with stale keys", std::sqrt(sum / size), 0.01)});
}

// The outputs of a text decoded token by token, each with the plan for the length reached.
Matrix decoded(Lab& lab, const Matrix& q, const Matrix& k, const Matrix& v, auto&& plan_at,
               CachedKeys keys) {
  Matrix out(q.rows, dim);
  auto cache = KvCache::make({.kv_heads = 1, .head_dim = dim, .dtype = DType::f64, .keys = keys});
  if (!cache) return lab.keep(cache.error()), out;
  const KvCache::Sequence sequence[] = {cache->add()};
  for (std::int64_t t = 0; t < q.rows; ++t) {
    Vector token[] = {q.row(t), k.row(t), v.row(t)};
    const auto view = [](double* x) { return Tensor::dense(x, {1, 1, 1, dim}); };
    const Plan plan = plan_at(t + 1);
    lab.check(cache->append(sequence, view(token[1].data()), view(token[2].data()), plan));
    lab.check(cache->attend(sequence, view(token[0].data()), plan, {},
                            view(out.values.data() + t * dim)));
  }
  return out;
}

Evidence decoding(Lab& lab) {
  const std::int64_t n = 96, first = 32;
  const auto plan_at = [&](std::int64_t length) {
    return lab.plan(Rope{.scaling = DynamicNtk{.factor = 4, .max_position_embeddings = first}},
                    {.heads = 1, .kv_heads = 1, .head_dim = dim, .length = length});
  };
  const Matrix q = lab.normal_rows(n, dim), k = lab.normal_rows(n, dim),
               v = lab.normal_rows(n, dim);
  // Each key once, by the plan of its time; and the prefill of each length, whose last row is the
  // token that decoding has just made.
  Matrix turned(n, dim), stale(n, dim), prefill(n, dim);
  const auto first_rows = [](const Matrix& x, std::int64_t rows) {
    return Matrix(rows, dim, Vector(x.values.begin(), x.values.begin() + rows * dim));
  };
  const auto put = [](const Vector& row, Matrix& to, std::int64_t at) {
    std::ranges::copy(row, to.values.begin() + at * dim);
  };
  for (std::int64_t t = 0; t < n; ++t) {
    const Plan plan = plan_at(t + 1);
    put(lab.rotated(plan, k.row(t), t), turned, t);
    const Matrix keys = first_rows(k, t + 1), values = first_rows(v, t + 1);
    const Positions positions = Positions::range(0, t + 1);
    const Matrix all =
        lab.attend(plan, first_rows(q, t + 1), keys, values, positions, {.causal = true}).out;
    put(all.row(t), prefill, t);
    Matrix query(t + 1, dim);
    put(lab.rotated(plan, q.row(t), t), query, t);
    const Matrix old =
        lab.attend(Plan{}, query, first_rows(turned, t + 1), values, positions, {.causal = true})
            .out;
    put(old.row(t), stale, t);
  }
  const auto off = [&](const Matrix& out) {
    return largest_difference(out.values, prefill.values);
  };
  const double unrotated = off(decoded(lab, q, k, v, plan_at, CachedKeys::unrotated));
  const double again = off(decoded(lab, q, k, v, plan_at, CachedKeys::rotated));
  return found(
      say(n, " tokens decoded one by one, ", first,
          " trained, dynamic NTK: through KvCache with keys kept unrotated, or turned on at "
          "each new plan, every output is that of the prefill; with keys left as they were "
          "rotated outputs are off by up to ",
          off(stale), "."),
      {inside("largest | decoded − prefill |, keys kept unrotated", unrotated, rounding),
       inside("largest | decoded − prefill |, keys turned on", again, rounding),
       outside("largest | decoded − prefill |, keys left as they were", off(stale), 0.1)});
}

Evidence temperature(Lab& lab) {
  const Plan plan = at_length(lab, yarn(false), 0);
  const double amplitude = plan.rotate->amplitude;
  const Vector q = lab.normals(dim), k = lab.normals(dim);
  Plan plain = plan;
  plain.rotate->amplitude = 1;
  const double ratio = lab.score(plan, q, k, 11, 4) / lab.score(plain, q, k, 11, 4);
  return found(
      say("s = 4: cos and sin are multiplied by ", amplitude, ", so that logits grow by ", ratio,
          " = 1/t."),
      {inside("| amplitude − (0.1 ln 4 + 1) |", std::abs(amplitude - (0.1 * std::log(4.0) + 1)),
              rounding),
       inside("| logits' factor − amplitude² |", std::abs(ratio - amplitude * amplitude), 1e-11)});
}

constexpr Claim claims[] = {
    {37, 'b', group, "YaRN also changes the attention's temperature", "S2", Verdict::right,
     "True: cos and sin of queries and keys carry √(1/t)", "√(1/t) = 0.1 ln s + 1", yarn_paper,
     "compile(Rope{.scaling = Yarn{.factor = 4, …}}, {.head_dim = 128}), rotate->amplitude",
     run<temperature>},
    {38, 'a', group, "Dynamic scaling is the third part of YaRN", "S2", Verdict::wrong,
     "It is separate: YaRN's frequencies are fixed, and dynamic scaling goes with NTK as well",
     "s = max(1, l′/L)", yarn_paper, "compile() of Yarn and DynamicNtk for lengths 2048 and 8192",
     run<separate>},
    {38, 'b', group, "s is always the current length in place of the fixed one", "S2",
     Verdict::sloppy, "s = max(1, length/L): below the trained length nothing changes",
     "s = max(1, l′/L)", yarn_paper, "compile() of DynamicNtk and Yarn{.dynamic = true} for 512",
     run<never_shrinks>},
    {38, 'c', group, "Dynamic scaling therefore needs keys cached before rotation", "S2",
     Verdict::wrong, "Rotated keys can be turned on exactly, by n·(θ′ − θ)",
     "R_n(θ′)·k = R_n(θ′ − θ)·R_n(θ)·k", yarn_paper,
     "rotate() of rotated keys with a plan of frequencies θ′ − θ", run<rerotated>},
    {38, 'd', group, "Caching unrotated keys trades memory for accuracy", "S2", Verdict::wrong,
     "Both take the same memory; the price is rotating again", "", yarn_paper,
     "rotate(): out has the shape and dtype of x", run<same_memory>},
    {38, 'e', group, "Keys rotated under an earlier length are wrong under the new one", "S2",
     Verdict::right, "True, until they are turned on", "q·R_{n}(θ)k mixes θ′ and θ", yarn_paper,
     "rotate() of keys and query with plans of lengths 2048 and 8192", run<stale_cache>},
    {38, 'f', group, "Keys cached before rotation stay right at every length", "S2", Verdict::right,
     "True, and so do rotated keys that are turned on with each new plan; left alone they are "
     "stale",
     "decode(t) = prefill(t + 1), last row", yarn_paper,
     "KvCache with CachedKeys::unrotated and ::rotated, DynamicNtk, against attend_reference()",
     run<decoding>},
};

}  // namespace of_dynamic

std::span<const Claim> dynamic_claims() { return of_dynamic::claims; }

}  // namespace posenc::detail
