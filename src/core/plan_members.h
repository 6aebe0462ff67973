// The parts of a plan, member by member: one list for all that must see every one of them (where
// two plans differ, a fingerprint, the test that perturbs each). A member that is missing here does
// not compile: a structured binding names all.
#pragma once

#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "posenc/plan.h"

namespace posenc::detail {

// A member of a part, as const as the part.
template <class T>
struct PlanMember {
  std::string_view name;
  T& value;
};
template <class T>
PlanMember(std::string_view, T&) -> PlanMember<T>;

template <class T, class Part>
concept Either = std::same_as<std::remove_const_t<T>, Part>;

auto members(Either<Waves> auto& part) {
  auto& [width, layout, frequency, row_offset, zero_row, axes, blocks, cosine_first, amplitude] =
      part;
  return std::tuple{PlanMember{"width", width},         PlanMember{"layout", layout},
                    PlanMember{"frequency", frequency}, PlanMember{"row_offset", row_offset},
                    PlanMember{"zero_row", zero_row},   PlanMember{"axes", axes},
                    PlanMember{"blocks", blocks},       PlanMember{"cosine_first", cosine_first},
                    PlanMember{"amplitude", amplitude}};
}

auto members(Either<Rows> auto& part) {
  auto& [rows, width, row_offset, table, axis_rows] = part;
  return std::tuple{PlanMember{"rows", rows}, PlanMember{"width", width},
                    PlanMember{"row_offset", row_offset}, PlanMember{"table", table},
                    PlanMember{"axis_rows", axis_rows}};
}

auto members(Either<Ramp> auto& part) {
  auto& [width, channel, scale] = part;
  return std::tuple{PlanMember{"width", width}, PlanMember{"channel", channel},
                    PlanMember{"scale", scale}};
}

auto members(Either<Add> auto& part) {
  auto& [kind, embedding_scale] = part;
  return std::tuple{PlanMember{"kind", kind}, PlanMember{"embedding_scale", embedding_scale}};
}

auto members(Either<XposDecay> auto& part) {
  auto& [factor, scale, centre] = part;
  return std::tuple{PlanMember{"factor", factor}, PlanMember{"scale", scale},
                    PlanMember{"centre", centre}};
}

auto members(Either<GgmlRope> auto& part) {
  auto& [theta_scale, freq_scale, ext_factor, ramp_low, ramp_high, attn_factor, freq_factors,
         restart] = part;
  return std::tuple{
      PlanMember{"theta_scale", theta_scale},   PlanMember{"freq_scale", freq_scale},
      PlanMember{"ext_factor", ext_factor},     PlanMember{"ramp_low", ramp_low},
      PlanMember{"ramp_high", ramp_high},       PlanMember{"attn_factor", attn_factor},
      PlanMember{"freq_factors", freq_factors}, PlanMember{"restart", restart}};
}

auto members(Either<Phase> auto& part) {
  auto& [of_keys, heads, radians] = part;
  return std::tuple{PlanMember{"of_keys", of_keys}, PlanMember{"heads", heads},
                    PlanMember{"radians", radians}};
}

auto members(Either<Mix> auto& part) {
  auto& [heads, inputs, outputs, cosine, sine, rest_sine] = part;
  return std::tuple{PlanMember{"heads", heads},     PlanMember{"inputs", inputs},
                    PlanMember{"outputs", outputs}, PlanMember{"cosine", cosine},
                    PlanMember{"sine", sine},       PlanMember{"rest_sine", rest_sine}};
}

auto members(Either<PositionMap> auto& part) {
  auto& [modulus, divisor, offset, most] = part;
  return std::tuple{PlanMember{"modulus", modulus}, PlanMember{"divisor", divisor},
                    PlanMember{"offset", offset}, PlanMember{"most", most}};
}

auto members(Either<Regions::Region> auto& part) {
  auto& [query, key, frequency_scale] = part;
  return std::tuple{PlanMember{"query", query}, PlanMember{"key", key},
                    PlanMember{"frequency_scale", frequency_scale}};
}

auto members(Either<Regions> auto& part) {
  auto& [window, chunk, region] = part;
  return std::tuple{PlanMember{"window", window}, PlanMember{"chunk", chunk},
                    PlanMember{"region", region}};
}

auto members(Either<Rotate> auto& part) {
  auto& [pairing, first_dim, rotary_dim, blocks, heads, axes, frequency, amplitude, growth, phase,
         mix, regions, polar, values, values_stay, angles, ggml] = part;
  return std::tuple{PlanMember{"pairing", pairing},
                    PlanMember{"first_dim", first_dim},
                    PlanMember{"rotary_dim", rotary_dim},
                    PlanMember{"blocks", blocks},
                    PlanMember{"heads", heads},
                    PlanMember{"axes", axes},
                    PlanMember{"frequency", frequency},
                    PlanMember{"amplitude", amplitude},
                    PlanMember{"growth", growth},
                    PlanMember{"phase", phase},
                    PlanMember{"mix", mix},
                    PlanMember{"regions", regions},
                    PlanMember{"polar", polar},
                    PlanMember{"values", values},
                    PlanMember{"values_stay", values_stay},
                    PlanMember{"angles", angles},
                    PlanMember{"ggml", ggml}};
}

auto members(Either<Slopes> auto& part) {
  auto& [slope, bidirectional, before_scale] = part;
  return std::tuple{PlanMember{"slope", slope}, PlanMember{"bidirectional", bidirectional},
                    PlanMember{"before_scale", before_scale}};
}

auto members(Either<DistanceRows> auto& part) {
  auto& [first, row, saturates] = part;
  return std::tuple{PlanMember{"first", first}, PlanMember{"row", row},
                    PlanMember{"saturates", saturates}};
}

auto members(Either<BiasTable> auto& part) {
  auto& [rows, further_axes, row_count, values, bidirectional, buckets, max_distance] = part;
  return std::tuple{PlanMember{"rows", rows},
                    PlanMember{"further_axes", further_axes},
                    PlanMember{"row_count", row_count},
                    PlanMember{"values", values},
                    PlanMember{"bidirectional", bidirectional},
                    PlanMember{"buckets", buckets},
                    PlanMember{"max_distance", max_distance}};
}

auto members(Either<Relative> auto& part) {
  auto& [rows, further_rows, row_count, uses_query, uses_key, uses_value, query, key, value,
         max_distance, profiles] = part;
  return std::tuple{PlanMember{"rows", rows},           PlanMember{"further_rows", further_rows},
                    PlanMember{"row_count", row_count}, PlanMember{"uses_query", uses_query},
                    PlanMember{"uses_key", uses_key},   PlanMember{"uses_value", uses_value},
                    PlanMember{"query", query},         PlanMember{"key", key},
                    PlanMember{"value", value},         PlanMember{"max_distance", max_distance},
                    PlanMember{"profiles", profiles}};
}

auto members(Either<Logits> auto& part) {
  auto& [multiplier, temperature, beta, floor, offset, head_scale, head_bias, softcap] = part;
  return std::tuple{PlanMember{"multiplier", multiplier},
                    PlanMember{"temperature", temperature},
                    PlanMember{"beta", beta},
                    PlanMember{"floor", floor},
                    PlanMember{"offset", offset},
                    PlanMember{"head_scale", head_scale},
                    PlanMember{"head_bias", head_bias},
                    PlanMember{"softcap", softcap}};
}

auto members(Either<Lengths> auto& part) {
  auto& [from, to] = part;
  return std::tuple{PlanMember{"from", from}, PlanMember{"to", to}};
}

auto members(Either<Plan> auto& part) {
  auto& [add, rotate, bias, relative, logits, valid] = part;
  return std::tuple{PlanMember{"add", add},       PlanMember{"rotate", rotate},
                    PlanMember{"bias", bias},     PlanMember{"relative", relative},
                    PlanMember{"logits", logits}, PlanMember{"valid", valid}};
}

// A struct of a plan, not a number, a list, a table or an optional.
template <class T>
concept PlanPart = requires(T& part) { members(part); };

// visit(member) for each member of a part.
template <PlanPart T>
void each_member(T& part, auto&& visit) {
  std::apply([&](const auto&... member) { (visit(member), ...); }, members(part));
}

// visit(name, a's member, b's member) for each member of two parts of one kind.
template <PlanPart T>
void each_member(const T& a, const T& b, auto&& visit) {
  std::apply(
      [&](const auto&... ours) {
        std::apply(
            [&](const auto&... theirs) { (visit(ours.name, ours.value, theirs.value), ...); },
            members(b));
      },
      members(a));
}

}  // namespace posenc::detail
