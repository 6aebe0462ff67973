// What tokens say to a scheme: how many numbers, how their projection begins, and as which tensors the scheme takes them.
#include <cmath>
#include <numbers>

#include "lab/train/position.h"

namespace posenc::lab {
namespace {

constexpr std::int64_t numbers_of_p = 8;  // of each head: the authors'

}  // namespace

Saying Position::saying() const {
  if (std::holds_alternative<ContentRope>(scheme_)) return Saying::angles;
  if (const auto* plain = std::get_if<Scheme>(&scheme_))
    return std::holds_alternative<Profiles>(*plain) ? Saying::profiles : Saying::nothing;
  const auto* list = std::get_if<ContentScheme>(&scheme_);
  if (list == nullptr) return Saying::nothing;
  if (std::holds_alternative<Forgetting>(*list)) return Saying::gates;
  if (std::holds_alternative<Wall>(*list)) return Saying::channel_gates;
  if (std::holds_alternative<GrapeAp>(*list)) return Saying::p;
  return std::holds_alternative<Path>(*list) ? Saying::factors : Saying::nothing;
}

SaidRow Position::said_row() const {
  const std::int64_t heads = geometry_.heads, channels = heads * geometry_.head_dim;
  switch (saying()) {
    case Saying::nothing: return {};
    case Saying::gates: return {.numbers = heads, .biased = heads};
    // A channel that halves at each token carries nothing: Wall begins with gates that are open for the most part.
    case Saying::channel_gates: return {.numbers = channels, .biased = channels, .middle = 3};
    case Saying::factors: return {.numbers = channels + heads, .biased = heads};
    case Saying::profiles: {
      const auto& profiles = std::get<Profiles>(std::get<Scheme>(scheme_));
      const std::int64_t numbers = heads * profiles.profiles;
      if (profiles.curves != ProfileCurves::ramp) return {.numbers = numbers};
      return {.numbers = numbers, .biased = numbers, .middle = std::log(std::numbers::e - 1)};
    }
    case Saying::p: return {.numbers = heads * numbers_of_p};
    case Saying::angles: break;
  }
  const std::int64_t pairs = form_.plan.rotate->pairs();
  const double head_dim = static_cast<double>(geometry_.head_dim);
  // All begin near RoPE, but for Mamba-3's, whose time steps begin between 0.001 and 0.1.
  switch (form_.step) {
    case AngleStep::plain:
      return {.numbers = heads * pairs, .biased = heads * pairs, .deviation = 0.1, .middle = 1};
    case AngleStep::powers:
      return {.numbers = heads,
              .biased = heads,
              .deviation = 0.1,
              .middle = std::log(std::expm1(std::pow(10000, 2 / head_dim) - 1))};
    case AngleStep::softplus:
      return {.numbers = heads,
              .biased = heads,
              .deviation = 0.1,
              .middle = std::log(std::numbers::e - 1)};
    case AngleStep::tanh: break;
  }
  return {.numbers = pairs + heads,
          .biased = heads,
          .middle = std::log(0.01),
          .spread = std::log(100) / std::sqrt(12)};
}

Said Position::views(float* numbers, std::int64_t texts, std::int64_t length) const {
  const std::int64_t row = said_row().numbers, heads = geometry_.heads;
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
  const std::int64_t head_dim = geometry_.head_dim;
  switch (saying()) {
    case Saying::nothing: return {};
    case Saying::gates: return {.log_gates = by_head(0)};
    case Saying::channel_gates: return {.channel_gates = columns(0, heads, head_dim)};
    case Saying::factors:
      return {.w = columns(0, heads, head_dim), .beta = by_head(heads * head_dim)};
    case Saying::profiles: return {.profiles = columns(0, heads, row / heads)};
    case Saying::p: return {.p = columns(0, heads, numbers_of_p)};
    case Saying::angles: break;
  }
  if (form_.gate == AngleGate::none) return {.angles = {.said = columns(0, heads, row / heads)}};
  return {.angles = {.said = columns(0, 1, row - heads), .gate = columns(row - heads, heads, 1)}};
}

}  // namespace posenc::lab
