// What position costs beside attention. Counts decide, but for 27e, whose times have far to go to
// its bounds; other times are shown, and depend on the machine.
#include <algorithm>
#include <array>
#include <ctime>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_cost {

constexpr std::string_view group = "cost";

// Processor time of this thread, which other programs hardly change.
double seconds_used() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds of one call, the fastest of three.
double timed(auto&& act) {
  double best = 1e300;
  for (int i = 0; i < 3; ++i) {
    const double start = seconds_used();
    act();
    best = std::min(best, seconds_used() - start);
  }
  return best;
}

// Multiplications and additions of one head: queries with keys, weights with values.
std::int64_t attention_operations(std::int64_t length, std::int64_t dim) {
  return 2 * 2 * length * length * dim;
}
// Four multiplications and two additions a pair, of queries and of keys.
std::int64_t rope_operations(std::int64_t length, std::int64_t dim) {
  return 2 * length * 6 * (dim / 2);
}

Evidence dense_equals_pairs(Lab& lab) {
  const std::int64_t d = 128, p = 37;
  const auto n = static_cast<std::size_t>(d);
  const Plan plan = lab.rope(d, {.pairing = Pairing::interleaved});
  Matrix unit(d, d);
  for (std::int64_t c = 0; c < d; ++c) unit(c, c) = 1;
  const Matrix columns = lab.rotated(plan, unit, lab.ids(std::vector<std::int64_t>(n, p)));
  const Vector x = lab.normals(d), y = lab.rotated(plan, x, p);
  Vector c(n / 2), s(n / 2), dense(n), pairs(n);
  for (std::size_t r = 0; r < n / 2; ++r) {
    const auto channel = static_cast<std::int64_t>(2 * r);
    c[r] = columns(channel, channel);
    s[r] = columns(channel, channel + 1);
  }
  constexpr int repeats = 50;
  volatile double sink = 0;
  const double dense_time = timed([&] {
    for (int i = 0; i < repeats; ++i) {
      std::ranges::fill(dense, 0.0);
      for (std::int64_t from = 0; from < d; ++from)
        for (std::int64_t to = 0; to < d; ++to)
          dense[static_cast<std::size_t>(to)] +=
              columns(from, to) * x[static_cast<std::size_t>(from)];
      sink = dense[static_cast<std::size_t>(i)];
    }
  });
  const double pairs_time = timed([&] {
    for (int i = 0; i < repeats; ++i) {
      for (std::size_t r = 0; r < n / 2; ++r) {
        pairs[2 * r] = x[2 * r] * c[r] - x[2 * r + 1] * s[r];
        pairs[2 * r + 1] = x[2 * r] * s[r] + x[2 * r + 1] * c[r];
      }
      sink = pairs[static_cast<std::size_t>(i)];
    }
  });
  const std::int64_t full = 2 * d * d, sparse = 6 * (d / 2);
  return {
      say("d = 128: the full matrix and the element-wise form agree; they take ", full, " and ",
          sparse, " operations a token, ", static_cast<double>(full) / static_cast<double>(sparse),
          " times as many, and ", d * d, " numbers against ", d, "."),
      say("Measured in plain loops: ", dense_time / pairs_time, " times as long."),
      {inside("largest | dense − posenc's rotate |", largest_difference(dense, y), rounding),
       inside("largest | element-wise − posenc's rotate |", largest_difference(pairs, y), rounding),
       outside("operations dense/element-wise",
               static_cast<double>(full) / static_cast<double>(sparse), 1)}};
}

Evidence linear_table(Lab& lab) {
  const Matrix one = lab.table(64, 256), two = lab.table(64, 512), wide = lab.table(128, 256);
  const auto size = [](const Matrix& x) { return static_cast<std::int64_t>(x.values.size()); };
  const double short_time = timed([&] { lab.table(64, 1024); });
  const double long_time = timed([&] { lab.table(64, 2048); });
  return {say("256 rows of width 64 are ", size(one),
              " numbers; twice the rows or twice the width ", size(two), "."),
          say("Measured: 2,048 rows take ", long_time / short_time, " times as long as 1,024."),
          {inside("| numbers − L·d |", std::abs(static_cast<double>(size(two) - 512 * 64)), 0),
           inside("| numbers − L·d |, twice the width",
                  std::abs(static_cast<double>(size(wide) - 256 * 128)), 0)}};
}

Evidence dwarfed(Lab& lab) {
  const std::int64_t length = 256, dim = 64, context = 4096;
  const Plan none = lab.plan(NoPe{}), rope = lab.rope(dim);
  const Matrix q = lab.normal_rows(length, dim), k = lab.normal_rows(length, dim);
  const Positions positions = Positions::range(0, length);
  const double attention = timed([&] { lab.attend(none, q, k, k, positions); });
  const double turning = timed([&] {
    lab.rotated(rope, q, positions);
    lab.rotated(rope, k, positions);
  });
  const auto ratio = static_cast<double>(attention_operations(context, dim)) /
                     static_cast<double>(rope_operations(context, dim));
  return {say("A head of 64 channels over 4,096 tokens: attention takes ",
              attention_operations(context, dim), " operations, rotating its queries and keys ",
              rope_operations(context, dim), ", 1/", std::llround(ratio), " of it."),
          say("Measured at 256 tokens with the reference kernels, sines and cosines included: 1/",
              attention / turning, "."),
          {outside("operations of attention over those of RoPE", ratio, 100)}};
}

Evidence quadratic(Lab& lab) {
  const std::int64_t dim = 32;
  const Plan none = lab.plan(NoPe{});
  const auto run_at = [&](std::int64_t length) {
    const Matrix x = lab.normal_rows(length, dim);
    std::int64_t logits = 0;
    const double seconds = timed([&] {
      logits = static_cast<std::int64_t>(
          lab.attend(none, x, x, x, Positions::range(0, length)).logits.values.size());
    });
    return std::pair{logits, seconds};
  };
  const auto [few, short_time] = run_at(128);
  const auto [many, long_time] = run_at(256);
  const double ratio = static_cast<double>(many) / static_cast<double>(few);
  return {say("128 tokens have ", few, " logits, 256 have ", many, ": ", ratio, " times as many."),
          say("Measured: ", long_time / short_time, " times as long."),
          {inside("| ratio of logits − 4 |", std::abs(ratio - 4), 0)}};
}

// Seconds of turning a head's queries and keys, and of its attention without position.
struct Costs {
  double turning = 0, attention = 0;
};
class Head {
 public:
  Head(Lab& lab, std::int64_t length) : length_(length) {
    for (auto& x : x_) {
      x.resize(static_cast<std::size_t>(length * dim));
      for (float& number : x) number = static_cast<float>(lab.normal());
    }
  }
  // One call of each is too short for the clock: rotations are repeated.
  Costs costs(Lab& lab, const Plan& rope, const Plan& none) {
    constexpr int turns = 16;
    const Positions positions = Positions::range(0, length_);
    const Tensor q = view(0), k = view(1), v = view(2), out = view(3);
    const double turning = timed([&] {
      for (int i = 0; i < turns; ++i) {
        lab.check(rotate(rope, q, positions, Side::query, out, {.count = 1}));
        lab.check(rotate(rope, k, positions, Side::key, out, {.count = 1}));
      }
    });
    const double attention = timed([&] {
      const Mask all{.causal = false};
      lab.check(attend({q, k, v, positions, positions, all, {.count = 1}}, none, out));
    });
    return {turning / turns, attention};
  }

 private:
  static constexpr std::int64_t dim = 64;
  Tensor view(std::size_t which) { return Tensor::dense(x_[which].data(), {1, 1, length_, dim}); }
  std::int64_t length_;
  std::array<std::vector<float>, 4> x_;
};

Evidence growth(Lab& lab) {
  constexpr std::int64_t few = 256, many = 2048, dim = 64;
  const Plan none = lab.plan(NoPe{}), rope = lab.rope(dim);
  Head short_head(lab, few), long_head(lab, many);
  // Both lengths in turns, so that a busy moment falls on both, and the middle of the rounds.
  std::array<Costs, 5> rounds_of_few, rounds_of_many;
  for (std::size_t i = 0; i < rounds_of_few.size(); ++i) {
    rounds_of_few[i] = short_head.costs(lab, rope, none);
    rounds_of_many[i] = long_head.costs(lab, rope, none);
  }
  const auto middle = [](auto& rounds, double Costs::* cost) {
    std::ranges::sort(rounds, {}, cost);
    return rounds[rounds.size() / 2].*cost;
  };
  const double turning = middle(rounds_of_many, &Costs::turning);
  const double attention = middle(rounds_of_many, &Costs::attention);
  const double turning_grows = turning / middle(rounds_of_few, &Costs::turning);
  const double attention_grows = attention / middle(rounds_of_few, &Costs::attention);
  return {
      say("A head of 64 channels from ", few, " to ", many, " tokens: rotating takes ",
          rope_operations(many, dim) / rope_operations(few, dim),
          " times as many operations, attention ",
          attention_operations(many, dim) / attention_operations(few, dim),
          "; their times grow likewise."),
      say("Measured with rotate() and attend() in float32, one thread: rotating takes ",
          turning_grows, " times as long, attention ", attention_grows, "; at ", many,
          " tokens rotating takes ", turning * 1e6, " µs, attention ", attention * 1e6, " µs."),
      {outside("growth of attention's time over that of rotating", attention_grows / turning_grows,
               2),
       inside("time of rotating over that of attention, 2,048 tokens", turning / attention, 0.25)}};
}

Evidence rope_in_every_layer(Lab& lab) {
  const Model model = lab.model("llama-2-7b");
  std::int64_t rope = 0, once = 0;
  for (const LayerGroup& layers : model.groups) {
    const Geometry& g = layers.geometry;
    rope += static_cast<std::int64_t>(layers.layers.size()) * (g.heads + g.kv_heads) * 6 *
            (g.head_dim / 2);
    once = g.width;
  }
  return found(say("llama-2-7b, a token: rotating queries and keys in every layer takes ", rope,
                   " operations, adding one vector at the input ", once, "."),
               {outside("operations of RoPE over those of a sum at the input",
                        static_cast<double>(rope) / static_cast<double>(once), 1)});
}

constexpr Claim claims[] = {
    {18, 'c', group, "The element-wise form gives what the block-diagonal matrix gives, for less",
     "S3", Verdict::right, "Equal; 3d operations a token against 2d²", "x ⊗ cos + x⊥ ⊗ sin",
     "2104.09864", "rotate() of the unit vectors is the matrix; rotate() of x is its product",
     run<dense_equals_pairs>},
    {27, 'a', group, "The sinusoidal table costs O(L·d)", "S4", Verdict::right,
     "True, and it need not be kept: rows can be made as they are read", "L·d", "1706.03762",
     "posenc table pe.npy --scheme sinusoidal --width 64 --positions 0:512", run<linear_table>},
    {27, 'b', group, "Beside attention position is nearly free", "S4", Verdict::right,
     "True: the ratio grows with the length", "4L²d against 6Ld a head", "2104.09864",
     "attend_reference() with NoPe{}, against rotate() of q and k", run<dwarfed>},
    {27, 'c', group, "Twice the length is four times the attention", "S4", Verdict::right,
     "True of full attention", "L²", "1706.03762", "attend_reference() at 128 and 256 tokens",
     run<quadratic>},
    {27, 'd', group, "Rotation is more efficient than adding vectors", "S3", Verdict::wrong,
     "It is done in every layer, to each query and key head; a sum is done once, at the input",
     "layers·(heads + kv_heads)·3·head_dim against width", "2104.09864",
     "posenc explain llama-2-7b", run<rope_in_every_layer>},
    {27, 'e', group, "With the text position grows by O(L·d), attention by O(L²·d)", "S4",
     Verdict::right, "True, and measured so: position extends cheaply, attention does not",
     "L·d against L²·d", "1706.03762", "rotate() and attend() of a head at 256 and 2048 tokens",
     run<growth>},
};

}  // namespace of_cost

std::span<const Claim> cost_claims() { return of_cost::claims; }

}  // namespace posenc::detail
