// What tokens say to a scheme: how many numbers, how their projection begins, and as which tensors
// the scheme takes them.
#include <cmath>
#include <numbers>

#include "evidence/lab/train/position.h"

namespace posenc::lab {

std::int64_t SaidRow::numbers() const {
  std::int64_t all = 0;
  for (const SaidPart& part : parts) all += part.numbers;
  return all;
}
std::int64_t SaidRow::biased() const {
  std::int64_t all = 0;
  for (const SaidPart& part : parts) all += part.biased ? part.numbers : 0;
  return all;
}

// Those that have a projection of their own.
std::vector<const TableInfo*> Position::said_tables() const {
  std::vector<const TableInfo*> said;
  if (const auto* scheme = std::get_if<ContentScheme>(&scheme_))
    for (const TableInfo& table : info(*scheme).tables)
      if (table.required() && table.holds.axes.of_tokens() && table.holds.projection.same.empty())
        said.push_back(&table);
  return said;
}

Saying Position::saying() const {
  if (std::holds_alternative<ContentRope>(scheme_)) return Saying::angles;
  if (const auto* plain = std::get_if<Scheme>(&scheme_))
    return std::holds_alternative<Profiles>(*plain) ? Saying::profiles : Saying::nothing;
  return said_tables().empty() ? Saying::nothing : Saying::tables;
}

SaidRow Position::said_row() const {
  const std::int64_t heads = geometry_.heads;
  SaidRow row;
  switch (saying()) {
    case Saying::nothing: return row;
    case Saying::tables:
      for (const TableInfo* table : said_tables()) {
        const auto& [axes, projection] = std::tie(table->holds.axes, table->holds.projection);
        const std::int64_t columns = axes.count < 4                ? 1
                                     : axes.all[3] == Axis::column ? projection.columns
                                                                   : extent(axes.all[3]);
        row.parts.push_back({heads * columns, columns, projection.biased, projection.activation});
        // A channel that halves at each token carries nothing: gates of channels begin open.
        if (columns > 1 && projection.activation == Activation::log_sigmoid) row.middle = 3;
      }
      return row;
    case Saying::profiles: {
      const auto& profiles = std::get<Profiles>(std::get<Scheme>(scheme_));
      const bool ramp = profiles.curves == ProfileCurves::ramp;
      row.parts = {{.numbers = heads * profiles.profiles, .biased = ramp}};
      if (ramp) row.middle = std::log(std::numbers::e - 1);
      return row;
    }
    case Saying::angles: break;
  }
  const std::int64_t pairs = form_.plan.rotate->pairs();
  const double head_dim = static_cast<double>(geometry_.head_dim);
  // RePo's positions are of the token alone, a linear map's (its code has that kind beside SwiGLU).
  if (!form_.sums) return {.parts = {{.numbers = heads}}};
  // All begin near RoPE, but for Mamba-3's, whose time steps begin between 0.001 and 0.1.
  switch (form_.step) {
    case AngleStep::plain:
      return {.parts = {{.numbers = heads * pairs, .biased = true}}, .deviation = 0.1, .middle = 1};
    case AngleStep::powers:
      return {.parts = {{.numbers = heads, .biased = true}},
              .deviation = 0.1,
              .middle = std::log(std::expm1(std::pow(10000, 2 / head_dim) - 1))};
    case AngleStep::softplus:
      return {.parts = {{.numbers = heads, .biased = true}},
              .deviation = 0.1,
              .middle = std::log(std::numbers::e - 1)};
    case AngleStep::tanh: break;
  }
  return {.parts = {{.numbers = pairs}, {.numbers = heads, .biased = true}},
          .middle = std::log(0.01),
          .spread = std::log(100) / std::sqrt(12)};
}

Said Position::views(float* numbers, std::int64_t texts, std::int64_t length) const {
  const SaidRow of_token = said_row();
  const std::int64_t row = of_token.numbers(), heads = geometry_.heads;
  // [text][head][token], and [text][head][token][column], from the row's number `first` on.
  const auto by_head = [&](std::int64_t first) {
    Tensor made = Tensor::dense(numbers + first, {texts, heads, length});
    made.stride = {length * row, 1, row};
    return made;
  };
  const auto columns = [&](std::int64_t first, std::int64_t of_heads, std::int64_t count) {
    Tensor made = Tensor::dense(numbers + first, {texts, of_heads, length, count});
    made.stride = {length * row, count, row, 1};
    return made;
  };
  switch (saying()) {
    case Saying::nothing: return {};
    case Saying::tables: {
      Said said;
      std::int64_t first = 0;
      for (const SaidPart& part : of_token.parts) {
        said.tables.push_back(part.columns == 1 ? by_head(first)
                                                : columns(first, heads, part.columns));
        first += part.numbers;
      }
      return said;
    }
    case Saying::profiles: return {.profiles = columns(0, heads, row / heads)};
    case Saying::angles: break;
  }
  if (form_.gate == AngleGate::none) return {.angles = {.said = columns(0, heads, row / heads)}};
  return {.angles = {.said = columns(0, 1, row - heads), .gate = columns(row - heads, heads, 1)}};
}

}  // namespace posenc::lab
