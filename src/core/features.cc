// What plans have, said once, and the one sentence by which rooms refuse it.
#include "posenc/features.h"

#include <algorithm>
#include <iterator>
#include <variant>

namespace posenc {

// Of a test build alone: every plan has a feature that no room knows.
#ifdef POSENC_TEST_FEATURE
bool has_test_feature = false;
#endif

namespace {

using enum Feature;

constexpr FeatureInfo list[] = {
    {waves, "waves", "waves added to the embedding", "add them to the embedding: add()"},
    {position_table, "position_table", "a learned table added to the embedding",
     "add it to the embedding: add()"},
    {ramp, "ramp", "the index added to the embedding", "add it to the embedding: add()"},
    {rotation, "rotation", "a rotation of queries and keys", "rotate first, with rotate()"},
    {head_frequencies, "head_frequencies", "frequencies that differ by head",
     "take a scheme whose heads share them"},
    {several_axes, "several_axes", "positions on several axes (pictures, videos)",
     "take a scheme for text"},
    {rotated_values, "rotated_values", "rotated values", "use attend()"},
    {phases, "phases", "phases of queries or keys (RoPE++, PoPE)", "use rotate(), or attend()"},
    {growth, "growth", "xPos' growth", "growth needs a position: use rotate()"},
    {pair_magnitudes, "pair_magnitudes", "magnitudes that differ by pair (YaRN by axis)",
     "give every axis the same magnitude, or use rotate(), or attend()"},
    {polar, "polar", "polar pairs (PoPE)",
     "its softplus loses the sign: use rotate(), or attend(), whose backward pass has its "
     "gradient"},
    {mixture, "mixture", "mixtures of cosines (FoPE)",
     "a mixture has a transpose and no inverse: use rotate() or rotate_transpose()"},
    {regions, "regions",
     "rotations that depend on where a key stands to its query (dual chunk, ReRoPE, SelfExtend)",
     "use attend()"},
    {two_angles, "two_angles", "channels of a pair that rotate by two angles (V-JEPA 2)",
     "such a pair may have no inverse, and no one angle: use rotate(), or attend()"},
    {engine_arithmetic, "engine_arithmetic", "the angles of an engine's floats",
     "compile the plan with exact angles"},
    {slopes, "slopes", "slopes by distance (ALiBi)", "use attend with the plan alone"},
    {slopes_before_scale, "slopes_before_scale",
     "slopes that the logits' scale multiplies (Falcon)", "use attend with the plan alone"},
    {bias_table, "bias_table", "a bias by distance (T5)", "use attend with the plan alone"},
    {vectors_by_distance, "vectors_by_distance", "vectors by distance (Shaw, Transformer-XL)",
     "use attend with the plan alone"},
    {profiles, "profiles", "vectors by distance that meet profiles",
     "use attend with the plan alone"},
    {temperature, "temperature", "logits that grow with the query's position",
     "multiply the query by Logits::query_scale first, and drop the temperature"},
    {head_temperature, "head_temperature", "a learned temperature by head",
     "multiply the query by Logits::query_scale first, and drop the temperature"},
    {softcap, "softcap", "a softcap of the logits", "use attend with the plan alone"},
    {unknown, "unknown", "what this posenc does not know",
     "take the posenc that wrote the plan, or compile it here"},
};

constexpr const Room* every_room[] = {&rooms::add,
                                      &rooms::bias,
                                      &rooms::rotate,
                                      &rooms::rotate_transpose,
                                      &rooms::rotate_inverse,
                                      &rooms::rotate_by,
                                      &rooms::rekey,
                                      &rooms::key_header,
                                      &rooms::rotation_angles,
                                      &rooms::rotation_turns,
                                      &rooms::frequency_gradient,
                                      &rooms::content_angles,
                                      &rooms::attend,
                                      &rooms::beside_vectors,
                                      &rooms::attend_backward,
                                      &rooms::attended_frequencies,
                                      &rooms::attended_temperature,
                                      &rooms::attend_content,
                                      &rooms::rotated_keys,
                                      &rooms::rerotated_keys,
                                      &rooms::unrotated_keys,
                                      &rooms::ranks,
                                      &rooms::cuda,
                                      &rooms::triton,
                                      &rooms::emit,
                                      &rooms::emit_score_mod,
                                      &rooms::torch_rotation,
                                      &rooms::torch_cos_sin,
                                      &rooms::hf_checks,
                                      &rooms::flex_score,
                                      &rooms::flex_attention,
                                      &rooms::onnx,
                                      &rooms::translate,
                                      &rooms::identify};

struct OfKind {
  FeatureSet& of;

  void operator()(const Waves&) const { of.add(waves); }
  void operator()(const Rows&) const { of.add(position_table); }
  void operator()(const Ramp&) const { of.add(ramp); }

  void operator()(const Plain& plain) const {
    of.add_if(plain.phase.has_value(), phases);
    of.add_if(plain.growth.has_value(), growth);
    of.add_if(!plain.magnitudes.empty(), pair_magnitudes);
  }
  void operator()(const Polar& pairs) const {
    of.add(polar);
    of.add_if(pairs.phase.has_value(), phases);
  }
  void operator()(const Mix&) const { of.add(mixture); }
  void operator()(const Regions&) const { of.add(regions); }
  void operator()(const TwoAngles&) const { of.add(two_angles); }
  void operator()(const HfFloat&) const { of.add(engine_arithmetic); }
  void operator()(const GgmlRope&) const { of.add(engine_arithmetic); }

  void operator()(const Slopes& bias) const {
    of.add(bias.before_scale ? slopes_before_scale : slopes);
  }
  void operator()(const BiasTable&) const { of.add(bias_table); }
};

}  // namespace

std::span<const FeatureInfo> feature_list() { return list; }

const FeatureInfo& info(Feature feature) { return list[static_cast<std::size_t>(feature)]; }

FeatureSet features(const Plan& plan) {
  FeatureSet of;
  const OfKind kind{of};
  if (plan.add) std::visit(kind, plan.add->kind);
  if (const std::optional<Rotate>& rotate = plan.rotate) {
    of.add(rotation);
    of.add_if(rotate->frequencies.heads > 1, head_frequencies);
    of.add_if(rotate->frequencies.axes > 1, several_axes);
    of.add_if(rotate->rotates_values(), rotated_values);
    std::visit(kind, rotate->kind);
  }
  if (plan.bias) std::visit(kind, *plan.bias);
  if (plan.relative) of.add(plan.relative->profiles > 0 ? profiles : vectors_by_distance);
  if (plan.logits.has_temperature())
    of.add(plan.logits.temperature == Temperature::heads ? head_temperature : temperature);
  of.add_if(plan.logits.softcap != 0, softcap);
  of.add_if(!plan.unknown.empty(), unknown);
#ifdef POSENC_TEST_FEATURE
  of.add_if(has_test_feature, unknown);
#endif
  return of;
}

std::span<const Room* const> room_list() { return every_room; }

const Room* find_room(std::string_view name) {
  const auto found = std::ranges::find(every_room, name, &Room::name);
  return found == std::end(every_room) ? nullptr : *found;
}

Expected<void> check_takes(const Room& room, FeatureSet of, std::string_view where) {
  const FeatureSet refused = room.refused(of);
  if (refused.empty()) return {};
  const FeatureInfo& first = *std::ranges::find_if(
      list, [&](const FeatureInfo& each) { return refused.has(each.feature); });
  return fail(where.empty() ? room.name : where,
              "the plan must not have " + std::string(first.words), first.name,
              room.cure.empty() || first.feature == unknown ? first.cure : room.cure);
}

Expected<void> check_takes(const Room& room, const Plan& plan, std::string_view where) {
  Expected<void> taken = check_takes(room, features(plan), where);
  // Of what nobody here knows, its name in the plan says more than that it is unknown.
  if (!taken && taken.error().got == info(Feature::unknown).name && !plan.unknown.empty())
    taken.error().got = plan.unknown.front();
  return taken;
}

}  // namespace posenc
