// Puts the keys of a scaling that an engine was told into a rotation.
#include "src/tools/told_rope.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "posenc/explain.h"
#include "src/model/compare.h"
#include "src/text/json_writer.h"

namespace posenc::detail {
namespace {

constexpr std::string_view fields_told[] = {"factor",
                                            "original_max_position_embeddings",
                                            "max_position_embeddings",
                                            "beta_fast",
                                            "beta_slow",
                                            "attention_factor",
                                            "mscale",
                                            "mscale_all_dim",
                                            "truncate",
                                            "low_freq_factor",
                                            "high_freq_factor",
                                            "short_factor",
                                            "long_factor",
                                            "short_mscale",
                                            "long_mscale"};

void write_field(JsonWriter& out, const JsonMember& member) {
  if (const auto* flag = member.value.get<bool>()) {
    out.member(member.key, *flag);
  } else if (const auto* whole = member.value.get<std::int64_t>()) {
    out.member(member.key, *whole);
  } else if (const auto value = real_number(member.value)) {
    out.member(member.key, *value);
  } else if (const auto* list = member.value.get<Json::Array>()) {
    std::vector<double> numbers;
    for (const Json& one : *list) numbers.push_back(real_number(one).value_or(0));
    out.member(member.key, numbers);
  }
}

// Members of the file's own scaling that the dict does not give anew.
void write_own(JsonWriter& out, const Rope& rope, const Json& dict) {
  const Expected<Json> own = parse_json(to_json(Scheme(rope)), "scaling");
  const Json* scaling = own ? own->find("scaling") : nullptr;
  const auto* members = scaling ? scaling->get<Json::Object>() : nullptr;
  if (!members) return;
  for (const JsonMember& member : *members)
    if (is_told_field(member.key) && !dict.find(member.key)) write_field(out, member);
}

// Lengths that a configuration may have beside the scaling.
void write_lengths(JsonWriter& out, std::string_view word, const Json& dict, const Scaling& own,
                   std::int64_t context) {
  const auto* longrope = std::get_if<LongRope>(&own);
  const bool is_longrope = word == "longrope" || word == "su";
  if (is_longrope && longrope && !dict.find("original_max_position_embeddings"))
    out.member("original_max_position_embeddings", longrope->original_max_position_embeddings);
  if ((word != "dynamic" && !is_longrope) || dict.find("max_position_embeddings")) return;
  const auto* dynamic = std::get_if<DynamicNtk>(&own);
  out.member("max_position_embeddings",
             dynamic ? dynamic->max_position_embeddings : std::max<std::int64_t>(context, 1));
}

// "16, 24, 24"
std::string sections_text(const Rope& rope) {
  std::string text;
  for (const std::int64_t pairs : rope.mrope_section)
    text += (text.empty() ? "" : ", ") + std::to_string(pairs);
  return text;
}

}  // namespace

std::optional<double> real_number(const Json& json) {
  if (const auto* whole = json.get<std::int64_t>()) return static_cast<double>(*whole);
  const auto* number = json.get<double>();
  return number && std::isfinite(*number) ? std::optional(*number) : std::nullopt;
}

std::span<const std::string_view> told_fields() { return fields_told; }

bool is_told_field(std::string_view key) {
  return std::ranges::find(fields_told, key) != std::end(fields_told);
}

std::optional<Rope> told_rope(const Rope& rope, const Json& dict, const ToldHow& how,
                              std::vector<Finding>& remarks) {
  const auto remark = [&](std::string code, std::string_view found, std::string message,
                          std::string cure) {
    remarks.push_back({.code = std::move(code),
                       .found = printable(found),
                       .message = std::move(message),
                       .cure = std::move(cure),
                       .line = how.line});
  };
  const Json* type = dict.find("rope_type");
  if (!type) type = dict.find("type");
  const std::string* given = type ? type->get<std::string>() : nullptr;
  const auto* members = dict.get<Json::Object>();
  if (!given && (!members || members->empty())) return {};
  // What is merged keeps the file's own type, and its other members.
  const bool keeps = !given && !how.replaces && !std::holds_alternative<Unscaled>(rope.scaling);
  if (!given && !keeps) {
    remark("type_missing", "", "a scaling without rope_type: engines refuse it, or take none",
           "write rope_type");
    return {};
  }
  const std::string word(given ? *given : info(rope.scaling).name);
  Rope told = rope;
  told.scaling = Unscaled{};
  if (const Json* theta = dict.find("rope_theta")) {
    told.rope_theta = real_number(*theta).value_or(told.rope_theta);
  } else if (how.replaces && rope.rope_theta != how.base_without) {
    told.rope_theta = how.base_without;
    remark("theta_missing", number_text(how.base_without),
           "an override replaces all of rope_parameters: without rope_theta the base is " +
               number_text(how.base_without),
           "write rope_theta " + number_text(rope.rope_theta) + " beside rope_type");
  }
  if (how.replaces && !rope.mrope_section.empty() && !dict.find("mrope_section"))
    remark("mrope_lost", "",
           "the override replaces the file's dictionary, and mrope_section goes with it: tokens of "
           "pictures and videos are rotated by one row of positions, and text stays right",
           "write mrope_section [" + sections_text(rope) + "] beside rope_type");
  if (word == "default" || word == "mrope") return told;
  JsonWriter out;
  out.object().member("type", "rope").member("rope_theta", told.rope_theta);
  out.key("scaling").object().member("type", word);
  for (const JsonMember& member : *members)
    if (is_told_field(member.key)) write_field(out, member);
  if (keeps) write_own(out, rope, dict);
  write_lengths(out, word, dict, rope.scaling, how.context);
  if (const Json* part = dict.find("partial_rotary_factor"); part && word == "proportional")
    out.member("partial_rotary_factor", real_number(*part).value_or(1));
  out.end().end();
  const Expected<Scheme> scheme = read_scheme(out.text);
  if (!scheme) {
    remark("scaling_unread", word, scheme.error().message(), "");
    return {};
  }
  told.scaling = std::get<Rope>(*scheme).scaling;
  return told;
}

}  // namespace posenc::detail
