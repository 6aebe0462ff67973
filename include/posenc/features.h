// What a plan asks of whoever computes with it, and which rooms of the library can: each names what
// it takes, and refuses the rest by default. A feature that is new is refused everywhere until a
// room says that it takes it. docs/features.md prints the whole matrix.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "posenc/error.h"
#include "posenc/plan.h"

namespace [[gnu::visibility("default")]] posenc {

enum class Feature : std::uint8_t {
  waves,
  position_table,
  ramp,
  rotation,
  head_frequencies,
  several_axes,
  rotated_values,
  phases,
  growth,
  pair_magnitudes,
  polar,
  mixture,
  regions,
  two_angles,
  engine_arithmetic,
  slopes,
  slopes_before_scale,
  bias_table,
  vectors_by_distance,
  profiles,
  temperature,
  head_temperature,
  softcap,
  unknown,
};

// Features, each once: what a plan has, or what a room takes.
class FeatureSet {
 public:
  constexpr FeatureSet() = default;
  constexpr FeatureSet(std::initializer_list<Feature> features) {
    for (const Feature feature : features) add(feature);
  }
  constexpr void add(Feature feature) { bits_ |= std::uint64_t{1} << static_cast<int>(feature); }
  constexpr void add_if(bool there, Feature feature) {
    if (there) add(feature);
  }
  constexpr bool has(Feature feature) const { return bits_ >> static_cast<int>(feature) & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr FeatureSet operator|(FeatureSet other) const { return FeatureSet(bits_ | other.bits_); }
  constexpr FeatureSet operator&(FeatureSet other) const { return FeatureSet(bits_ & other.bits_); }
  constexpr FeatureSet without(FeatureSet other) const { return FeatureSet(bits_ & ~other.bits_); }
  constexpr bool operator==(const FeatureSet&) const = default;

 private:
  constexpr explicit FeatureSet(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

// What is said of a feature: its name, in a sentence, and what to do where it is refused.
struct FeatureInfo {
  Feature feature;
  std::string_view name, words, cure;
};
std::span<const FeatureInfo> feature_list();
const FeatureInfo& info(Feature feature);

// All that the plan has. The empty plan has none.
FeatureSet features(const Plan& plan);

// A place that computes with plans. What it neither takes nor ignores (because it acts elsewhere: a
// bias does not concern a rotation) it refuses.
struct Room {
  std::string_view name;
  FeatureSet takes, ignores = {};
  std::string_view cure = {};  // instead of the feature's own

  constexpr FeatureSet refused(FeatureSet of) const { return of.without(takes | ignores); }
};

namespace rooms {

using enum Feature;

inline constexpr FeatureSet additions{waves, position_table, ramp};
inline constexpr FeatureSet rotations{
    rotation, head_frequencies, several_axes, rotated_values,  phases,           growth,
    polar,    mixture,          two_angles,   pair_magnitudes, engine_arithmetic};
inline constexpr FeatureSet logits{temperature, head_temperature, softcap};
inline constexpr FeatureSet biases{slopes, slopes_before_scale, bias_table};
inline constexpr FeatureSet relative{vectors_by_distance, profiles};
inline constexpr FeatureSet in_attention = logits | biases | relative;
inline constexpr FeatureSet elsewhere = additions | in_attention;  // of a rotation

inline constexpr Room add{"add", additions, rotations | FeatureSet{regions} | in_attention};
inline constexpr Room bias{"bias", biases,
                           additions | rotations | FeatureSet{regions} | logits | relative};
inline constexpr Room rotate{"rotate", rotations, elsewhere};
inline constexpr Room rotate_transpose{"rotate_transpose", rotations.without({polar}), elsewhere};
inline constexpr Room rotate_inverse{"rotate_inverse",
                                     rotations.without({polar, mixture, two_angles}), elsewhere};
inline constexpr Room rotate_by{
    "rotate_by", {rotation, head_frequencies, several_axes, rotated_values, phases}, elsewhere};
inline constexpr Room rekey{"rekey", rotate_inverse.takes.without({pair_magnitudes}), elsewhere,
                            "cache such keys as they left the projection"};
inline constexpr Room key_header{"key_header",
                                 {rotation, head_frequencies, several_axes, rotated_values},
                                 elsewhere,
                                 "send such keys to who has the same plan, without a header"};
inline constexpr Room rotation_angles{"rotation_angles", rotations.without({two_angles}),
                                      elsewhere};
// Of exact angles alone: an engine's are no product.
inline constexpr Room rotation_turns{"rotation_turns",
                                     rotation_angles.takes.without({engine_arithmetic}), elsewhere};
inline constexpr Room frequency_gradient{
    "rotate_frequency_gradient",
    rotations.without({mixture, two_angles, pair_magnitudes, engine_arithmetic}), elsewhere};
inline constexpr Room content_angles{"content_angles", {rotation, head_frequencies}, elsewhere};
inline constexpr Room attend{"attend", rotations | FeatureSet{regions} | in_attention, additions};
inline constexpr Room beside_vectors{"attend with vectors by distance",
                                     attend.takes.without({polar, regions}), additions};
inline constexpr Room attend_backward{"attend_backward", attend.takes, additions};
inline constexpr Room attended_frequencies{
    "attend_backward of the frequencies",
    attend.takes.without({regions, two_angles, pair_magnitudes, engine_arithmetic}), additions,
    "leave rotation_frequency absent"};
inline constexpr Room attended_temperature{
    "attend_backward of a temperature",
    attend.takes.without({polar, slopes_before_scale, profiles}), additions,
    "leave head_scale and head_bias absent"};
inline constexpr Room attend_content{"attend with a content scheme",
                                     rotations.without({polar}) | logits, additions,
                                     "use attend with the plan alone, or drop it"};
inline constexpr Room rotated_keys{"cache of rotated keys",
                                   attend.takes.without({polar, regions, vectors_by_distance}),
                                   additions, "make the cache with CachedKeys::unrotated"};
inline constexpr Room rerotated_keys{
    "cache of keys that are rotated anew",
    rotated_keys.takes.without({mixture, two_angles, pair_magnitudes}), additions,
    "make the cache with CachedKeys::unrotated"};
inline constexpr Room unrotated_keys{"cache of unrotated keys", attend.takes, additions};
inline constexpr Room ranks{"attention on several ranks", attend.takes, additions};
inline constexpr Room cuda{
    "cuda",
    {rotation, head_frequencies, several_axes, rotated_values, growth, engine_arithmetic},
    elsewhere,
    "rotate on the CPU, or attend() there"};
inline constexpr Room triton{"posenc.triton",
                             {rotation, head_frequencies, several_axes, rotated_values},
                             elsewhere,
                             "posenc.torch.rotate takes more"};
// What is not the rotation or the bias itself is named in the head of the text.
inline constexpr Room emit{
    "emit", FeatureSet{rotation, head_frequencies, several_axes, rotated_values} | biases,
    additions | logits | relative};
inline constexpr Room emit_score_mod{
    "emit --to score_mod", {slopes, bias_table}, additions | rotations, "posenc.flex takes more"};
inline constexpr Room torch_rotation{"posenc.torch.Rotation",
                                     {rotation, head_frequencies, several_axes, rotated_values},
                                     elsewhere,
                                     "plan.rotate takes any, without gradients"};
// cos and sin formed by torch, of frequencies and an attention factor alone.
inline constexpr Room torch_cos_sin{"posenc.torch.cos_sin",
                                    {rotation, several_axes, rotated_values},
                                    elsewhere,
                                    "Plan.cos_sin takes any"};
inline constexpr Room hf_checks{
    "posenc.hf.check",
    {rotation, head_frequencies, several_axes, rotated_values, engine_arithmetic},
    elsewhere};
inline constexpr Room flex_score{"posenc.flex.score_mod",
                                 {slopes, slopes_before_scale, bias_table, vectors_by_distance,
                                  temperature, head_temperature, softcap},
                                 additions | rotations,
                                 "use attend()"};
inline constexpr Room flex_attention{"posenc.flex.flex_attention",
                                     flex_score.takes | rotations.without({rotated_values}),
                                     additions, "use attend()"};
inline constexpr Room onnx{
    "ONNX", {rotation, softcap, engine_arithmetic}, additions | biases | relative};
inline constexpr Room translate{"translate", rotations | in_attention | FeatureSet{regions},
                                additions};
inline constexpr Room identify{
    "identify", rotations.without({two_angles, pair_magnitudes}) | FeatureSet{regions}, elsewhere};

}  // namespace rooms

std::span<const Room* const> room_list();
const Room* find_room(std::string_view name);  // null: none is called so

// The room takes the plan. Errors: the first feature that it refuses, in its words, with the cure.
// `where` is the function that was called; empty: the room's name.
Expected<void> check_takes(const Room& room, const Plan& plan, std::string_view where = {});
Expected<void> check_takes(const Room& room, FeatureSet of, std::string_view where = {});

}  // namespace posenc
