// A model's rotations as ONNX's operators take them: attributes, and tables of cosines and sines,
// in which any scaling fits that does not depend on the length of the text.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "posenc/features.h"
#include "src/core/try.h"
#include "src/engines/onnx.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

using Kind = EngineNote::Kind;

class OnnxNotes {
 public:
  explicit OnnxNotes(std::vector<EngineNote>& notes) : notes_(notes) {}

  void add(Kind kind, std::string what) {
    EngineNote note{kind, std::move(what)};
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
  }
  void lost(bool there, std::string what) {
    if (there) add(Kind::lost, std::move(what));
  }

 private:
  std::vector<EngineNote>& notes_;
};

void note_what_no_table_holds(const OnnxRotation& one, OnnxNotes notes) {
  const Rotate& rotate = *one.plan.rotate;
  if (one.plan.valid)
    notes.add(Kind::fixed, "the rotation depends on the length of the text: these tables are for " +
                               std::to_string(one.rows) + " tokens");
  notes.lost(rotate.slice.first_dim > 0,
             "the channels before the rotated ones: the operators rotate the first " +
                 std::to_string(rotate.slice.rotary_dim));
  notes.lost(rotate.slice.blocks > 1,
             "blocks of channels: the operators pair over all that rotate");
  const FeatureSet lost = rooms::onnx.refused(features(one.plan));
  for (const FeatureInfo& each : feature_list())
    notes.lost(lost.has(each.feature), std::string(each.words));
}

// Attributes of com.microsoft.RotaryEmbedding and of ai.onnx's of opset 23, which have the same
// names.
void write_rotary_embedding(detail::JsonWriter& out, const OnnxRotation& one) {
  const Rotate& rotate = *one.plan.rotate;
  const bool all = rotate.slice.rotary_dim == one.group->geometry.head_dim;
  out.key("RotaryEmbedding")
      .object()
      .member("interleaved", std::int64_t{rotate.slice.pairing == Pairing::interleaved})
      .member("num_heads", one.group->geometry.heads)
      .member("rotary_embedding_dim", all ? 0 : rotate.slice.rotary_dim)
      .end();
}

// com.microsoft.GroupQueryAttention, which takes the rotated part from the width of the tables.
void write_attention(detail::JsonWriter& out, const OnnxRotation& one) {
  const LayerGroup& group = *one.group;
  const Logits& logits = one.plan.logits;
  out.key("GroupQueryAttention")
      .object()
      .member("num_heads", group.geometry.heads)
      .member("kv_num_heads", group.geometry.kv_heads)
      .member("do_rotary", std::int64_t{1})
      .member("rotary_interleaved",
              std::int64_t{one.plan.rotate->slice.pairing == Pairing::interleaved});
  if (group.window) out.member("local_window_size", *group.window);
  if (logits.multiplier != 1)
    out.member("scale",
               logits.multiplier / std::sqrt(static_cast<double>(group.geometry.head_dim)));
  if (logits.softcap != 0) out.member("softcap", logits.softcap);
  out.end();
}

bool alike(const OnnxRotation& a, const OnnxRotation& b) {
  return a.plan.rotate == b.plan.rotate && a.plan.logits == b.plan.logits &&
         a.group->window == b.group->window && a.group->geometry == b.group->geometry;
}

}  // namespace

Expected<std::vector<OnnxRotation>> onnx_rotations(const Model& model, std::int64_t length) {
  if (length < 1) return fail("onnx", "a table needs 1 position or more", std::to_string(length));
  std::vector<OnnxRotation> found;
  for (const LayerGroup& group : model.groups) {
    if (group.stack != Stack::text) continue;
    POSENC_TRY(plan, compile(group, length));
    if (!plan.rotate) continue;
    OnnxRotation one{&group, group.layers, std::move(plan), length};
    const auto same =
        std::ranges::find_if(found, [&](const OnnxRotation& other) { return alike(one, other); });
    if (same == found.end())
      found.push_back(std::move(one));
    else
      same->layers.insert(same->layers.end(), group.layers.begin(), group.layers.end());
  }
  for (OnnxRotation& one : found) std::ranges::sort(one.layers);
  return found;
}

namespace detail {

Expected<void> translate_to_onnx(const Model& model, Translation& out) {
  POSENC_TRY(rotations, onnx_rotations(model, out.length));
  JsonWriter json;
  json.object().key("rotations").array();
  for (const OnnxRotation& one : rotations) {
    note_what_no_table_holds(one, OnnxNotes(out.notes));
    json.object().member("layers", one.layers);
    write_rotary_embedding(json, one);
    write_attention(json, one);
    const std::vector<std::int64_t> shape{one.rows, one.plan.rotate->pairs()};
    json.member("cos_cache", shape).member("sin_cache", shape).end();
  }
  json.end().end();
  out.target = json.text;
  out.is_json = true;
  if (model.dtype == "bfloat16" || model.dtype == "float16")
    OnnxNotes(out.notes).add(Kind::rounded,
                             "cos and sin are kept in " + model.dtype +
                                 " where the tensors are: the operators take tables of their type");
  // The tables are this very plan's.
  out.largest_angle_difference = 0;
  out.amplitude_difference = 0;
  return {};
}

}  // namespace detail
}  // namespace posenc
