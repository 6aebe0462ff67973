#include "evidence/lab/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "evidence/lab/train/hash.h"

namespace posenc::lab {

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

void Parameter::add_gradient(const std::vector<float>& more) {
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += more[i];
}

Parameter& Parameters::add(std::string name, std::int64_t size, double deviation, double middle) {
  Random random(Hash(seed_).add(name).number());
  const auto count = static_cast<std::size_t>(size);
  Parameter& made = all_.emplace_back(
      Parameter{.name = std::move(name), .value = std::vector<float>(count), .gradient = {}});
  for (float& number : made.value)
    number = static_cast<float>(middle + (deviation > 0 ? deviation * random.normal() : 0));
  made.gradient = made.mean = made.square = std::vector<float>(count);
  made.decays = deviation > 0;
  return made;
}

std::int64_t Parameters::size() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : all_) count += std::ssize(parameter.value);
  return count;
}

void Parameters::restore(const Parameters& other) {
  steps_ = other.steps_;
  std::ranges::copy(other.all_, all_.begin());
}

void Parameters::clear_gradients() {
  for (Parameter& parameter : all_) std::ranges::fill(parameter.gradient, 0.0F);
}

void Parameters::step(double rate) {
  constexpr float beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, decay = 0.1F;
  ++steps_;
  double squares = 0;
  for (const Parameter& parameter : all_)
    for (const float g : parameter.gradient) squares += static_cast<double>(g) * g;
  const auto cut = static_cast<float>(1 / std::max(1.0, std::sqrt(squares)));
  const auto steps = static_cast<float>(steps_);
  const float unbias1 = 1 / (1 - std::pow(beta1, steps)),
              unbias2 = 1 / (1 - std::pow(beta2, steps)), by = static_cast<float>(rate);
  for (Parameter& parameter : all_)
    for (std::size_t i = 0; i < parameter.value.size(); ++i) {
      const float g = parameter.gradient[i] * cut;
      float& mean = parameter.mean[i];
      float& square = parameter.square[i];
      float& value = parameter.value[i];
      mean = beta1 * mean + (1 - beta1) * g;
      square = beta2 * square + (1 - beta2) * g * g;
      if (parameter.decays) value -= by * decay * value;
      value -= by * mean * unbias1 / (std::sqrt(square * unbias2) + epsilon);
    }
}

}  // namespace posenc::lab
