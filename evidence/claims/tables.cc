// Learned tables and biases by distance: how many parameters, where they end, what models use them.
#include <algorithm>

#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_tables {

constexpr std::string_view group = "tables, biases and models";

// Numbers that training must supply: the tables of a plan that are not computed.
std::int64_t learned_parameters(const Plan& plan, std::int64_t heads, std::int64_t head_dim) {
  std::int64_t count = 0;
  if (plan.add)
    if (const Rows* rows = std::get_if<Rows>(&plan.add->kind)) count += rows->rows * rows->width;
  if (plan.bias)
    if (const BiasTable* bias = std::get_if<BiasTable>(&*plan.bias); bias && !bias->values)
      count += bias->row_count * heads;
  if (plan.relative) {
    const Relative& r = *plan.relative;
    count += (r.uses_query + r.uses_key + r.uses_value) * r.row_count * head_dim;
  }
  return count;
}

bool all_layers(const Model& model, std::string_view scheme) {
  return !model.groups.empty() && std::ranges::all_of(model.groups, [&](const LayerGroup& group) {
    return !group.schemes.empty() && info(group.schemes.front()).name == scheme;
  });
}

Evidence bert_is_learned(Lab& lab) {
  const Model bert = lab.model("bert-base-uncased");
  const Learned* learned =
      bert.groups.empty() ? nullptr : std::get_if<Learned>(&bert.groups[0].schemes.front());
  const std::int64_t rows = learned ? learned->rows : 0;
  return found(
      say("bert-base-uncased's own configuration gives a learned table of ", rows, " × ",
          learned ? bert.groups[0].geometry.width : 0, "."),
      {inside("groups of layers without a learned table", all_layers(bert, "learned") ? 0 : 1, 0),
       outside("rows of its table", static_cast<double>(rows), 0)});
}

Evidence who_uses_what(Lab& lab) {
  struct Use {
    std::string_view model, scheme;
  };
  double wrong = 0;
  std::string list;
  for (const auto& [name, scheme] :
       {Use{"bert-base-uncased", "learned"}, Use{"gpt2", "learned"}, Use{"llama-2-7b", "rope"},
        Use{"bloom-176b", "alibi"}, Use{"t5-small", "t5"}}) {
    wrong += all_layers(lab.model(name), scheme) ? 0 : 1;
    list += say(list.empty() ? "" : ", ", name, " ", scheme);
  }
  return found("As their configurations say: " + list + ".",
               {inside("models that use another scheme", wrong, 0)});
}

Evidence table_size(Lab& lab) {
  const Plan plan = lab.plan(Learned{.rows = 2048}, {.width = 4096});
  const std::int64_t count = learned_parameters(plan, 32, 128);
  return found(say("A learned table for 2,048 tokens of width 4,096 has ", count, " parameters."),
               {inside("| parameters/8.4 million − 1 |, stated to two digits",
                       std::abs(static_cast<double>(count) / 8.4e6 - 1), 0.006)});
}

Evidence hard_cap(Lab& lab) {
  const std::int64_t rows = 512, width = 8;
  Vector numbers = lab.normals(rows * width), out(width);
  Learned learned{.rows = rows};
  learned.table = Table::borrow(Tensor::dense(numbers.data(), {rows, width}));
  const Plan plan = lab.plan(learned, {.width = width});
  const Tensor to = Tensor::dense(out.data(), {1, 1, width});
  const auto last = position_vectors(plan, Positions::range(511, 1), to);
  const auto beyond = position_vectors(plan, Positions::range(512, 1), to);
  return found("A table of 512 rows: position 511 has a vector; position 512 is refused: \"" +
                   (beyond ? "" : beyond.error().rule) + "\".",
               {inside("position 512 is answered (1: yes)", beyond ? 1 : 0, 0),
                inside("position 511 is refused (1: yes)", last ? 0 : 1, 0)});
}

Evidence parameter_counts(Lab& lab) {
  const Geometry g{.width = 512, .heads = 8, .kv_heads = 8, .head_dim = 64};
  const auto count = [&](const Scheme& scheme) {
    return learned_parameters(lab.plan(scheme, g), g.heads, g.head_dim);
  };
  const std::int64_t none = count(Sinusoidal{}) + count(Rope{}) + count(Alibi{}) + count(NoPe{});
  const std::int64_t learned = count(Learned{.rows = 512}), t5 = count(T5{}),
                     shaw = count(Shaw{.max_distance = 16});
  return found(
      say("Width 512, 8 heads of 64: sinusoidal, RoPE and ALiBi together ", none,
          " parameters, a learned table of 512 rows ", learned, ", T5 ", t5,
          ", Shaw with k = 16 (keys and values, a layer) ", shaw, "."),
      {inside("parameters of sinusoidal, RoPE, ALiBi", static_cast<double>(none), 0),
       inside("| learned − rows·width |", std::abs(static_cast<double>(learned - 512 * 512)), 0),
       inside("| Shaw − 2·(2k + 1)·head_dim |", std::abs(static_cast<double>(shaw - 2 * 33 * 64)),
              0)});
}

Evidence t5_parameters(Lab& lab) {
  const Model t5 = lab.model("t5-small");
  double off = 0, stacks = 0;
  std::string list;
  for (const LayerGroup& layers : t5.groups) {
    const T5* scheme = std::get_if<T5>(&layers.schemes.front());
    if (!scheme) continue;
    const std::int64_t count = learned_parameters(lab.take(compile(layers)), layers.geometry.heads,
                                                  layers.geometry.head_dim);
    off = std::max(
        off, std::abs(static_cast<double>(count - layers.geometry.heads * scheme->num_buckets)));
    stacks += 1;
    list += say(list.empty() ? "" : ", ", name(layers.stack), " ", count, " for ",
                static_cast<std::int64_t>(layers.layers.size()), " layers");
  }
  return found("t5-small: " + list + ".",
               {inside("largest | parameters − heads·buckets | of a stack", off, 0),
                inside("| stacks with one table for all layers − 2 |", std::abs(stacks - 2), 0)});
}

Evidence t5_reach(Lab& lab) {
  const std::int64_t near = lab.take(t5_bucket(-15, 32, 128, false));
  const std::int64_t edge = lab.take(t5_bucket(-113, 32, 128, false));
  const std::int64_t far = lab.take(t5_bucket(-1000000, 32, 128, false));
  std::int64_t used = 0;
  for (std::int64_t last = -1, n = 0; n <= 1000; ++n)
    if (const std::int64_t b = lab.take(t5_bucket(-n, 32, 128, false)); b != last) last = b, ++used;
  return found(
      say("32 buckets, causal: distance 15 has bucket ", near,
          " to itself; from 113 on, up to a "
          "million, all share bucket ",
          far, "."),
      {inside("| bucket of 113 − bucket of 1,000,000 |", std::abs(static_cast<double>(edge - far)),
              0),
       inside("| buckets used up to 1,000 − 32 |", std::abs(static_cast<double>(used - 32)), 0)});
}

Evidence alibi_is_linear(Lab& lab) {
  const std::int64_t heads = 8, n = 64;
  const Plan plan = lab.plan(Alibi{}, {.heads = heads});
  const Matrix bias = lab.bias(plan, heads, Positions::range(0, n), Positions::range(0, n));
  double off = 0;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        off = std::max(off, std::abs(bias(h * n + i, j) + std::pow(2, -static_cast<double>(h + 1)) *
                                                              static_cast<double>(i - j)));
  return found(say("8 heads, 64 tokens: the bias is −2^(−h)·(i − j); at distance 63 head 1 gets ",
                   bias(63, 0), ", head 8 ", bias(7 * n + 63, 0), "."),
               {inside("largest | bias + m_h·(i − j) |", off, 0)});
}

Evidence length_does_not_matter(Lab& lab) {
  const Matrix ten = lab.table(512, 10), hundred = lab.table(512, 100);
  return found(
      "d = 512: the first row, and the nine after it, are the same in tables of 10 and of 100 "
      "positions.",
      {inside("largest difference of the ten rows",
              largest_difference(ten.values, std::span(hundred.values).first(ten.values.size())),
              0)});
}

Evidence binary_periods(Lab&) {
  std::int64_t wrong = 0;
  std::string list;
  for (int bit = 0; bit < 3; ++bit) {
    const auto value = [&](int n) { return (n >> bit) & 1; };
    int period = 1;
    const auto repeats = [&] {
      for (int n = 0; n < 64; ++n)
        if (value(n) != value(n + period)) return false;
      return true;
    };
    while (!repeats()) ++period;
    wrong += period != 2 << bit;
    list += say(list.empty() ? "" : ", ", period);
  }
  return found("Counting up, the three lowest bits repeat after " + list + " numbers.",
               {inside("periods other than 2, 4, 8", static_cast<double>(wrong), 0)});
}

Evidence cosine_is_shifted_sine(Lab&) {
  double off = 0;
  for (int i = -1000; i <= 1000; ++i)
    off = std::max(off, std::abs(std::cos(0.01 * i) - std::sin(0.01 * i + pi / 2)));
  return found("2,001 angles between −10 and 10: the cosine is the sine a quarter turn ahead.",
               {inside("largest | cos t − sin(t + π/2) |", off, rounding)});
}

constexpr Claim claims[] = {
    {20, 'a', group, "BERT uses sine and cosine", "S0", Verdict::wrong,
     "BERT's table is learned, as the same text says in its first section", "x + E[p]",
     "1810.04805", "posenc explain bert-base-uncased", run<bert_is_learned>},
    {20, 'b', group, "BERT and GPT learn tables, LLaMA rotates, BLOOM has ALiBi, T5 its buckets",
     "S0 S4", Verdict::right, "True of their configurations", "", "", "posenc explain bloom-176b",
     run<who_uses_what>},
    {24, 'a', group, "A learned table of 2048 × 4096 has about 8.4 million parameters", "S4",
     Verdict::right, "8,388,608", "rows·width", "1705.03122",
     "compile(Learned{.rows = 2048}, {.width = 4096})", run<table_size>},
    {24, 'b', group, "A learned table ends: a position beyond it has no vector", "S4",
     Verdict::right, "True; in posenc it is an error, never a wrapped index", "0 ≤ p < rows",
     "1705.03122", "position_vectors() at 512 of Learned{.rows = 512}", run<hard_cap>},
    {24, 'c', group, "Sinusoids, RoPE and ALiBi have no parameters, a learned table max_len × d",
     "S4", Verdict::right, "True; Shaw has 2·(2k + 1)·head_dim a layer", "", "",
     "compile() of each: tables that are not computed", run<parameter_counts>},
    {25, 'a', group, "T5's bias has heads × buckets parameters, shared by all layers", "S4",
     Verdict::right, "True of each stack: encoder and decoder have a table each",
     "heads·num_buckets", "1910.10683", "posenc explain t5-small", run<t5_parameters>},
    {25, 'b', group, "Logarithmic buckets cover long ranges with few parameters", "S4",
     Verdict::right, "True; beyond max_distance all distances look the same",
     "half + ⌊ln(n/half)/ln(max/half)·(buckets − half)⌋", "1910.10683",
     "posenc buckets --from=-128 --to=0", run<t5_reach>},
    {26, 'a', group, "ALiBi subtracts a fixed penalty, linear in the distance, per head", "S4",
     Verdict::right, "True", "−m_h·(i − j), m_h = 2^(−8h/H)", "2108.12409",
     "posenc bias b.npy --scheme alibi --heads 8 --queries 64 --keys 64 --dtype float64",
     run<alibi_is_linear>},
    {41, 'a', group, "The cosine is a sine shifted by a quarter turn", "S0", Verdict::right, "True",
     "cos t = sin(t + π/2)", "", "std::cos and std::sin", run<cosine_is_shifted_sine>},
    {41, 'b', group, "A position's vector does not depend on the sequence's length", "S1",
     Verdict::right, "True bit for bit", "", "1706.03762",
     "posenc table pe.npy --scheme sinusoidal --width 512 --positions 0:10",
     run<length_does_not_matter>},
    {41, 'c', group, "The lowest bits of a counter have the periods 2, 4, 8", "S3", Verdict::right,
     "True", "bit b repeats after 2^(b+1)", "", "shifts and masks of 0 to 63", run<binary_periods>},
};

}  // namespace of_tables

std::span<const Claim> table_claims() { return of_tables::claims; }

}  // namespace posenc::detail
