// Plans with every part, and each of their members changed, one at a time: whoever reads plans must
// see each change.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "posenc/plan.h"

namespace posenc::detail {

// Calls see(path, changed) for each change of one member of `whole`, number by number at the ends
// of a list.
class Perturbed {
 public:
  Perturbed(const Plan& whole, std::function<void(const std::string&, const Plan&)> see)
      : plan_(whole), see_(std::move(see)) {
    part("plan", plan_);
  }

 private:
  template <PlanPart T>
  void part(const std::string& path, T& value) {
    each_member(value, [&](const auto& row, auto& member) {
      any(path + "." + std::string(row.name), member);
    });
  }

  template <class T>
  void changed(const std::string& path, T& value, T to) {
    const T was = value;
    value = std::move(to);
    see_(path, plan_);
    value = was;
  }

  template <PlanPart T>
  void any(const std::string& path, T& value) {
    part(path, value);
  }
  template <class T>
    requires std::is_enum_v<T>
  void any(const std::string& path, T& value) {
    changed(path, value, static_cast<T>(value == T{} ? 1 : 0));
  }
  void any(const std::string& path, bool& value) { changed(path, value, !value); }
  template <class T>
    requires(std::is_arithmetic_v<T>)
  void any(const std::string& path, T& value) {
    constexpr T large = 1000;  // beyond it the next number may not be there
    changed(path, value, static_cast<T>(value > large ? value - 1 : value * 2 + 2));
  }
  void any(const std::string& path, std::string& value) { changed(path, value, value + "s"); }
  void any(const std::string& path, Table& value) {
    if (!value) return;
    std::vector<double> other = *value.owned;
    other.back() += 1;
    Table made = value.values.rank == 3
                     ? Table::own(other, {value.values.shape[0], value.values.shape[1],
                                          value.values.shape[2]})
                     : Table::own(other, value.values.shape[0], value.values.shape[1]);
    changed(path, value, std::move(made));
  }
  void any(const std::string& path, RowList& value) {
    if (value.empty()) return;
    std::vector<std::int32_t> other(value.begin(), value.end());
    other.back() = other.back() == 0 ? 1 : 0;
    changed(path, value, RowList(other));
  }
  template <class T>
  void any(const std::string& path, std::vector<T>& value) {
    if (value.empty()) return;
    if constexpr (PlanPart<T>) {
      for (std::size_t i = 0; i < value.size(); ++i)
        part(path + "[" + std::to_string(i) + "]", value[i]);
      std::vector<T> longer = value;
      longer.push_back(value.back());
      changed(path + " longer", value, longer);
    } else {
      for (const std::size_t i : {std::size_t{0}, value.size() - 1})
        any(path + "[" + std::to_string(i) + "]", value[i]);
    }
  }
  template <class T>
  void any(const std::string& path, std::optional<T>& value) {
    if (!value) return;
    any(path, *value);
    changed(path + " away", value, std::optional<T>());
  }
  template <class... T>
  void any(const std::string& path, std::variant<T...>& value) {
    std::visit([&](auto& kind) { part(path, kind); }, value);
    using First = std::variant_alternative_t<0, std::variant<T...>>;
    using Second = std::variant_alternative_t<1, std::variant<T...>>;
    std::variant<T...> other = First{};
    if (value.index() == 0) other = Second{};
    changed(path + " of another kind", value, other);
  }

  Plan plan_;
  std::function<void(const std::string&, const Plan&)> see_;
};

// Between them all that rotations can have, a kind each.
inline std::vector<Rotate> whole_rotations() {
  const Rotate plain{.slice = {.first_dim = 2, .rotary_dim = 8, .blocks = 2},
                     .frequencies = {.heads = 2,
                                     .axes = 2,
                                     .radians = {1, 0.5, 0.25, 0.125, 0.9, 0.45, 0.22, 0.11, 0.8,
                                                 0.4, 0.2, 0.1, 0.7, 0.35, 0.17, 0.08}},
                     .amplitude = 1.5,
                     .kind = Plain{.phase = Phase{.heads = 2, .radians = {1, 2, 3, 4, 5, 6, 7, 8}},
                                   .growth = XposDecay{.factor = {1, 2, 3, 4}, .centre = 3}}};
  const RotationKind kinds[] = {
      Polar{.phase = Phase{.side = Side::key, .radians = {1, 2, 3, 4}}},
      Mix{.heads = 2,
          .inputs = 2,
          .outputs = 1,
          .cosine = {1, 2, 3, 4},
          .sine = {5, 6, 7, 8},
          .rest_sine = 0.5},
      Regions{.window = 4,
              .region = {{},
                         {.query = {.modulus = 5, .offset = 1, .most = 9},
                          .key = {.modulus = 5, .divisor = 2, .most = 8},
                          .frequency_scale = 0.5}}},
      TwoAngles{.radians = {1, 2, 3, 4, 5, 6, 7, 8}},
      HfFloat{},
      GgmlRope{.ramp_low = 1, .ramp_high = 2, .freq_factors = {1, 2, 3, 4}}};
  static_assert(std::variant_size_v<RotationKind> == 7, "a new kind stands in this list");
  std::vector<Rotate> all{plain};
  for (const RotationKind& kind : kinds) {
    all.push_back(plain);
    all.back().kind = kind;
  }
  return all;
}

inline DistanceRows three_rows() { return {.first = -1, .row = {0, 1, 2}}; }

// Between them they have every part, and every kind of a part.
inline std::vector<Plan> whole_plans() {
  const auto table = [](std::int64_t rows, std::int64_t columns) {
    std::vector<double> numbers(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.5 + static_cast<double>(i);
    return Table::own(std::move(numbers), rows, columns);
  };
  const Relative relative{.rows = three_rows(),
                          .further_rows = {three_rows()},
                          .row_count = 3,
                          .query = table(3, 2),
                          .key = table(3, 2),
                          .value = Table::own(std::vector<double>(12, 1.0), {2, 3, 2}),
                          .max_distance = 1,
                          .profiles = 2};
  const Logits logits{.multiplier = 2,
                      .beta = 0.1,
                      .floor = 8,
                      .offset = 1,
                      .head_scale = {1, 2},
                      .head_bias = {3, 4},
                      .softcap = 30};
  const Waves waves{.width = 8,
                    .frequency = {1, 2, 3, 4},
                    .row_offset = 2,
                    .zero_row = 1,
                    .axes = 2,
                    .blocks = {4, 4}};
  const Rows rows{
      .rows = 3, .width = 2, .row_offset = 2, .table = table(3, 2), .axis_rows = {2, 1}};
  const BiasTable bias{.rows = three_rows(),
                       .further_axes = {three_rows()},
                       .row_count = 3,
                       .values = table(2, 3),
                       .buckets = 3,
                       .max_distance = 4};
  std::vector<Plan> all{
      {.add = Add{waves, 2},
       .bias = Slopes{.slope = {0.5, 0.25}},
       .relative = relative,
       .logits = logits,
       .valid = Lengths{1, 64},
       .unknown = {"rotate.hologram"}},
      {.add = Add{rows, 2}, .bias = bias, .logits = logits},
      {.add = Add{Ramp{.width = 8, .channel = 2, .scale = 0.5}, 2}, .logits = logits}};
  for (Rotate& rotate : whole_rotations()) all.push_back({.rotate = rotate, .logits = logits});
  return all;
}

// The lists of a plan as long as its sizes say, after one of these was changed.
inline Plan fitted(Plan plan) {
  const auto size = [](auto... factors) { return static_cast<std::size_t>((factors * ...)); };
  if (plan.rotate) {
    Rotate& rotate = *plan.rotate;
    const auto [heads, axes, radians] = rotate.frequencies;
    rotate.frequencies.radians.resize(size(heads, axes, rotate.pairs()), 0.5);
    const auto phase = [&](std::optional<Phase>& of) {
      if (of) of->radians.resize(size(of->heads, rotate.pairs()), 0.5);
    };
    if (auto* const plain = std::get_if<Plain>(&rotate.kind)) phase(plain->phase);
    if (auto* const polar = std::get_if<Polar>(&rotate.kind)) phase(polar->phase);
    if (auto* const two = std::get_if<TwoAngles>(&rotate.kind))
      two->radians.resize(size(axes, rotate.pairs()), 0.5);
    if (auto* const mix = std::get_if<Mix>(&rotate.kind))
      for (std::vector<double>* list : {&mix->cosine, &mix->sine})
        list->resize(size(mix->heads, mix->inputs, mix->outputs), 0.5);
  }
  if (plan.add)
    if (auto* waves = std::get_if<Waves>(&plan.add->kind))
      waves->frequency.resize(size(waves->axes, 2), 0.5);
  return plan;
}

}  // namespace posenc::detail
