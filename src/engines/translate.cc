// A model's rotation in an engine's words, read back by the engine's own profile.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "posenc/features.h"
#include "src/core/try.h"
#include "src/engines/onnx.h"
#include "src/engines/spell.h"
#include "src/engines/typed.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

using detail::SpelledRope, detail::Spelling;

bool rotates(const LayerGroup& group) {
  return std::ranges::any_of(
      group.schemes, [](const Scheme& scheme) { return std::holds_alternative<Rope>(scheme); });
}

bool is_sayable(const LayerGroup& group) { return group.stack == Stack::text && rotates(group); }

Expected<void> check_rotates(const Model& model) {
  if (std::ranges::any_of(model.groups, is_sayable)) return {};
  return fail("translate", "needs text layers that rotate", model.name,
              "posenc explain shows how position enters this model");
}

Rope& rope_in(LayerGroup& group) {
  for (Scheme& scheme : group.schemes)
    if (Rope* rope = std::get_if<Rope>(&scheme)) return *rope;
  std::unreachable();  // asked of groups that rotate
}

// Formats that several engines read; a profile reads them back.
struct FormatTarget {
  std::string_view name, engine;
  Spelling spelling;
  FileFormat format;
};
constexpr FormatTarget format_targets[] = {
    {"gguf", "llama.cpp", Spelling::gguf_keys, FileFormat::gguf},
    {"params.json", "vllm", Spelling::params, FileFormat::params},
};

constexpr Engine onnx{"onnx", "", "ONNX", "opset 23",
                      "onnxruntime/core/graph/contrib_ops/bert_defs.cc"};

// What max_position_embeddings says where a target has it: under YaRN the length that is reached,
// by which exllamav3 finds the factor.
std::int64_t context_to_say(const Model& model, const Rope& rope) {
  const auto* yarn = std::get_if<Yarn>(&rope.scaling);
  if (!yarn || !yarn->factor) return model.context;
  return std::llround(*yarn->factor * static_cast<double>(yarn->original_max_position_embeddings));
}

// The words, noted as a reader of the target would note them.
std::vector<Provenance> notes_of(const SpelledRope& one, Spelling spelling, bool several) {
  const bool old = spelling == Spelling::rope_scaling;
  const std::string inside =
      old ? "rope_scaling." : "rope_parameters." + (several ? one.layer_type + "." : std::string());
  std::vector<Provenance> notes{{"rope_theta", number_text(one.rope.rope_theta), Origin::file,
                                 old ? "rope_theta" : inside + "rope_theta"}};
  if (!std::holds_alternative<Unscaled>(one.rope.scaling) || !old)
    notes.push_back({"rope_type", std::string(info(one.rope.scaling).name), Origin::file,
                     inside + "rope_type"});
  for (const FieldSetting& setting : detail::said_fields(one.rope.scaling)) {
    std::string value;
    if (const auto* number = std::get_if<double>(&setting.value)) value = number_text(*number);
    if (const auto* whole = std::get_if<std::int64_t>(&setting.value))
      value = std::to_string(*whole);
    const bool beside = old && std::holds_alternative<LongRope>(one.rope.scaling) &&
                        setting.name == "original_max_position_embeddings";
    notes.push_back({std::string(setting.name), value, Origin::file,
                     (beside ? "" : inside) + std::string(setting.name)});
  }
  return notes;
}

// What has to be said: each kind of layer once, and one kind where all rotate alike.
std::vector<SpelledRope> kinds_of(const std::vector<SpelledRope>& ropes) {
  const auto alike = [](const SpelledRope& a, const SpelledRope& b) {
    return a.rope == b.rope && a.group->logits.beta == b.group->logits.beta;
  };
  std::vector<SpelledRope> kinds;
  for (const SpelledRope& one : ropes)
    if (std::ranges::none_of(kinds, [&](const SpelledRope& kind) {
          return kind.layer_type == one.layer_type && alike(kind, one);
        }))
      kinds.push_back(one);
  const bool one_kind = std::ranges::all_of(
      kinds, [&](const SpelledRope& kind) { return alike(kind, kinds.front()); });
  if (one_kind) kinds.resize(1);
  return kinds;
}

// The model as the target says it, which names `several` kinds of layers or one.
Model as_said(const Model& model, const std::vector<SpelledRope>& ropes, Spelling spelling,
              bool several) {
  Model said = model;
  said.files.clear();
  said.warnings.clear();
  for (LayerGroup& group : said.groups) {
    for (const SpelledRope& one : ropes) {
      if (!rotates(group) || one.group->layers != group.layers || one.group->stack != group.stack)
        continue;
      rope_in(group) = one.rope;
      group.provenance = notes_of(one, spelling, several);
    }
  }
  return said;
}

// What llama.cpp has flags and keys for; other scalings are tensors of its files.
bool has_words(const Rope& rope) {
  return std::holds_alternative<Unscaled>(rope.scaling) ||
         std::holds_alternative<Linear>(rope.scaling) || std::holds_alternative<Yarn>(rope.scaling);
}

// Flags of llama.cpp stand above what its loader does with a file's keys.
bool flags_decide(const Rope& rope, Spelling spelling) {
  return spelling == Spelling::llama_flags && has_words(rope);
}

Expected<void> compare(const Model& model, const Model& run, std::int64_t length,
                       Translation& out) {
  double angle = 0, amplitude = 0;
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    if (model.groups[g].stack != Stack::text || !rotates(model.groups[g])) continue;
    POSENC_TRY(plan, compile(model.groups[g], length));
    POSENC_TRY(theirs, compile(run.groups[g], length));
    const FeatureSet all = features(plan),
                     lost = all.without(features(theirs)) | rooms::translate.refused(all);
    for (const FeatureInfo& each : feature_list())
      if (lost.has(each.feature))
        out.notes.push_back({EngineNote::Kind::lost, std::string(each.words)});
    const Rotate &a = *plan.rotate, &b = *theirs.rotate;
    if (a.pairs() != b.pairs()) {
      out.notes.push_back(
          {EngineNote::Kind::lost, "other channels rotate: " + std::to_string(b.slice.rotary_dim) +
                                       " instead of " + std::to_string(a.slice.rotary_dim)});
      continue;
    }
    for (std::int64_t r = 0; r < a.pairs(); ++r)
      for (std::int64_t axis = 0; axis < std::min(a.frequencies.axes, b.frequencies.axes); ++axis)
        angle = std::max(
            angle, std::abs(a.at(0, axis, r) - b.at(0, axis, r)) * static_cast<double>(length - 1));
    amplitude = std::max(amplitude, std::abs(a.amplitude - b.amplitude));
  }
  out.largest_angle_difference = angle;
  out.amplitude_difference = amplitude;
  return {};
}

// No key of a file says which channels of an indexer's heads rotate: an engine's code must have it.
void say_indexers(const Model& model, Translation& out) {
  for (const LayerGroup& group : model.groups) {
    const auto own = indexer_group(group);
    if (!own) continue;
    const Indexer& indexer = *group.indexer;
    const std::string channels = std::to_string(indexer.rotary_dim) + " of " +
                                 std::to_string(indexer.head_dim) + " channels";
    EngineNote note{EngineNote::Kind::defaulted,
                    indexer.rotary_dim == 0
                        ? "nothing rotates in the indexer that picks keys"
                        : "the indexer that picks keys rotates the " +
                              std::string(indexer.slice == SliceEnd::leading ? "first " : "last ") +
                              channels + ", pairing " + std::string(name(indexer.pairing))};
    note.what += ": no key says it, and the engine's code must";
    if (std::ranges::find(out.notes, note) == out.notes.end()) out.notes.push_back(std::move(note));
  }
}

// In the words of an engine, or of a format.
Expected<Translation> in_words(const Model& model, std::string_view engine, std::int64_t length) {
  if (length < 0) return fail("translate", "length must be 0 or more", std::to_string(length));
  const auto* format = std::ranges::find(format_targets, engine, &FormatTarget::name);
  const bool is_format = format != std::end(format_targets);
  const std::string_view reader = is_format ? format->engine : engine;
  constexpr std::int64_t usual = 8192;  // where neither the file nor anybody else says
  Translation out{.engine = onnx};
  out.length = length > 0 ? length : model.context > 0 ? model.context : usual;
  if (engine == onnx.name) {
    POSENC_CHECK(check_rotates(model));
    say_indexers(model, out);
    POSENC_CHECK(detail::translate_to_onnx(model, out));
    return out;
  }
  POSENC_TRY(profile, detail::find_profile(reader));
  out.engine = profile->engine;
  const Spelling spelling = is_format ? format->spelling : profile->spelling;
  // What is told stands in a file of this format.
  const FileFormat said_in = is_format                         ? format->format
                             : spelling == Spelling::gguf_keys ? FileFormat::gguf
                                                               : FileFormat::config;
  out.is_json = said_in != FileFormat::config || spelling == Spelling::rope_parameters ||
                spelling == Spelling::rope_scaling;

  POSENC_CHECK(check_rotates(model));
  say_indexers(model, out);
  std::vector<SpelledRope> ropes;
  for (const LayerGroup& group : model.groups)
    if (is_sayable(group))
      ropes.push_back(detail::sayable(model, group, spelling, out.length, out.notes));
  // The kind that decides a long context is said first, and alone where only one can be.
  std::ranges::stable_sort(ropes, {},
                           [](const SpelledRope& one) { return one.group->window.has_value(); });
  const std::int64_t context = out.is_json && said_in == FileFormat::config
                                   ? context_to_say(model, ropes.front().rope)
                                   : model.context;
  std::vector<SpelledRope> kinds = kinds_of(ropes);
  for (SpelledRope& one : kinds)
    one.is_local = kinds.size() == 2 && one.group->window &&
                   std::holds_alternative<Unscaled>(one.rope.scaling);
  const std::size_t at = reader.find('@');
  const bool is_old = spelling == Spelling::vllm_flags && at != reader.npos &&
                      is_before(reader.substr(at + 1), "0.11.1");
  out.target = is_old ? detail::old_vllm_flags(kinds, length, out.notes)
                      : detail::spelled(kinds, spelling, context, length, out.notes);

  Model said = as_said(model, ropes, spelling, kinds.size() > 1);
  said.context = context;
  // A scaling that is tensors of a GGUF got there by the converter, which reads a config.json.
  const bool by_converter =
      spelling == Spelling::gguf_keys &&
      !std::ranges::all_of(ropes, [](const SpelledRope& one) { return has_words(one.rope); });
  if (said_in != FileFormat::config && !by_converter)
    said.files = {{model.name, said_in, FileRole::model}};
  POSENC_TRY(reading, read_as(said, reader, length));
  if (!reading.refused.empty()) {
    out.notes.push_back({EngineNote::Kind::lost, "not run: " + reading.refused});
    return out;
  }
  Model& run = reading.model;
  for (std::size_t g = 0; g < run.groups.size(); ++g)
    if (rotates(run.groups[g]) && flags_decide(rope_in(run.groups[g]), spelling))
      run.groups[g] = said.groups[g];
  for (const EngineNote& note : reading.notes)
    if (std::ranges::find(out.notes, note) == out.notes.end()) out.notes.push_back(note);
  POSENC_CHECK(compare(model, run, out.length, out));
  return out;
}

}  // namespace

Expected<Translation> translate(const Model& model, std::string_view engine, std::int64_t length) {
  const detail::TypedTarget* typed = detail::find_typed(engine);
  POSENC_TRY(out, in_words(model, typed ? typed->engine : engine, length));
  if (typed) {
    detail::type_in(*typed, model, out);
    return std::move(out);
  }
  const std::int64_t made_for = std::max(model.context, detail::reach(model));
  if (made_for > 0 && length > made_for)
    out.notes.push_back({EngineNote::Kind::lost,
                         detail::grouped(length) + " tokens are beyond the " +
                             detail::grouped(made_for) +
                             " that the file is made for, and nothing here stretches them: posenc "
                             "extend MODEL --to " +
                             std::to_string(length) + " --engine " + std::string(out.engine.name) +
                             " writes a scaling"});
  return out;
}

std::string engines_to_json() {
  detail::JsonWriter out;
  out.array();
  for (const Engine& engine : engines())
    out.object()
        .member("name", engine.name)
        .member("title", engine.title)
        .member("version", engine.version)
        .member("source", engine.source)
        .end();
  out.end();
  return out.text;
}

std::string to_json(const Translation& translation) {
  detail::JsonWriter out;
  out.object()
      .member("engine", translation.engine.name)
      .member("version", translation.engine.version);
  out.key("target");
  if (translation.is_json)
    out.json(translation.target);
  else
    out.value(translation.target);
  out.key("notes").array();
  for (const EngineNote& note : translation.notes)
    out.object().member("kind", name(note.kind)).member("what", note.what).end();
  out.end()
      .member("length", translation.length)
      .member("largest_angle_difference", translation.largest_angle_difference)
      .member("amplitude_difference", translation.amplitude_difference)
      .end();
  return out.text;
}

}  // namespace posenc
