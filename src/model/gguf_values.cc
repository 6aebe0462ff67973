// Values of a GGUF as the kinds that readers ask for: single precision as the decimal that was
// meant, whole numbers checked, each of them as JSON.
#include "src/model/gguf_values.h"

#include <cmath>
#include <utility>

#include "src/model/gguf.h"
#include "src/text/number.h"

namespace posenc::detail {

double meant(double stored) {
  const auto single = static_cast<float>(stored);
  if (static_cast<double>(single) != stored) return stored;
  return shortest_decimal(single);
}

Json json(const GgufValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return {*b};
  if (const auto* x = std::get_if<double>(&value)) return {meant(*x)};
  if (const auto* i = std::get_if<std::int64_t>(&value)) return {*i};
  if (const auto* s = std::get_if<std::string>(&value)) return {*s};
  if (const auto* u = std::get_if<std::uint64_t>(&value)) {
    if (*u <= static_cast<std::uint64_t>(INT64_MAX)) return {static_cast<std::int64_t>(*u)};
    return {static_cast<double>(*u)};
  }
  Json::Array list;
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value))
    for (const std::int64_t i : *ints) list.push_back({i});
  if (const auto* reals = std::get_if<std::vector<double>>(&value))
    for (const double x : *reals) list.push_back({meant(x)});
  return {std::move(list)};
}

std::optional<double> plain_number(const GgufValue& value) {
  if (const auto* x = std::get_if<double>(&value)) return meant(*x);
  if (const auto* u = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  return std::nullopt;
}

const GgufValue* GgufTranslation::find(std::string_view key) const {
  return row_ && !reads_key(*row_, key) ? nullptr : find_unread(key);
}

bool GgufTranslation::latent() const { return base_ && base_->attention.mla.nope > 0; }

bool GgufTranslation::slides() const {
  if (!row_) return true;
  if (windows_off_ || row_->slides == Slides::never) return false;
  return row_->slides == Slides::always || number("attention.sliding_window").value_or(0) > 0;
}

void GgufTranslation::nothing_slides() {
  windows_off_ = true;
  drop("sliding_window sliding_window_pattern layer_types");
}

void GgufTranslation::not_read(std::string_view key) const {
  reading_.warn("gguf_key_not_read",
                path(key) + " is not read by llama.cpp for " + arch_ + ", where it has no effect");
}

std::optional<double> GgufTranslation::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (const auto plain = plain_number(*value)) return plain;
  reading_.refuse(path(key), "must be a number", "a value of another kind");
  return std::nullopt;
}

std::optional<std::int64_t> GgufTranslation::whole(std::string_view key) const {
  const auto x = number(key);
  if (!x) return std::nullopt;
  constexpr double most = 9007199254740992.0;
  if (*x == std::floor(*x) && std::abs(*x) <= most) return static_cast<std::int64_t>(*x);
  reading_.refuse(path(key), "must be a whole number", number_text(*x), "the file is damaged");
  return std::nullopt;
}

std::vector<double> GgufTranslation::values(const StoredTensor& from) const {
  constexpr std::size_t most = 65536 * sizeof(double);
  if (from.bytes.empty() || from.bytes.size() > most) {
    reading_.refuse(from.name,
                    from.bytes.empty() ? "its data is not in the file" : "has too many numbers",
                    from.bytes.empty() ? "" : std::to_string(from.bytes.size()) + " bytes",
                    "download the whole file");
    return {};
  }
  auto numbers = doubles_of(from);
  if (numbers) return std::move(*numbers);
  reading_.refuse(from.name, numbers.error().rule, numbers.error().got, numbers.error().cure);
  return {};
}

void GgufTranslation::spell(std::string_view name, std::string said) {
  reading_.spelled.emplace_back(std::string(name), std::move(said));
}

void GgufTranslation::put(std::string_view name, Json value, std::string said) {
  config_.push_back({std::string(name), std::move(value)});
  spell(name, std::move(said));
}

void GgufTranslation::put_scaling(std::string_view name, Json value, std::string said) {
  scaling_.push_back({std::string(name), std::move(value)});
  spell("rope_scaling." + std::string(name), std::move(said));
}

void GgufTranslation::carry(const GgufKey& key) {
  const GgufValue* value = find(key.gguf);
  if (value) put(key.name, json(*value), path(key.gguf));
  if (!value) spell(key.name, path(key.gguf));  // a message that it is missing
}

}  // namespace posenc::detail
