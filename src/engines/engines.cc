// Finds an engine's profile and lets it read a model, rotation by rotation.
#include "posenc/engines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/core/try.h"
#include "src/core/words.h"
#include "src/engines/profile.h"
#include "src/engines/typed.h"
#include "src/scalings/scaling.h"
#include "src/text/json.h"
#include "src/text/number.h"

namespace posenc {
namespace {

using detail::contains_word;
using detail::EngineProfile;

bool is_called(const Engine& engine, std::string_view name) {
  return engine.name == name || contains_word(engine.aliases, name);
}

// "5" and "5.24" are versions of 5.24.0.
bool is_version(std::string_view version, std::string_view asked) {
  return version.starts_with(asked) &&
         (version.size() == asked.size() || version[asked.size()] == '.');
}

// 0.4.4.post2, 0.19.2rc1 and 2.6.0+cu124 count as the release that they belong to; b7380 is a build
// of llama.cpp.
using Version = std::array<int, 3>;
std::optional<Version> version_of(std::string_view text) {
  Version version{};
  if (text.starts_with('b')) {
    const auto build = detail::whole_number(text.substr(1));
    if (!build || *build <= 0 || *build > 1'000'000) return std::nullopt;
    version[2] = static_cast<int>(*build);
    return version;
  }
  text = text.substr(0, text.find_first_not_of("0123456789."));
  if (text.ends_with('.')) text.remove_suffix(1);
  for (int& part : version) {
    const char *const begin = text.data(), *const end = begin + text.size();
    const auto [rest, wrong] = std::from_chars(begin, end, part);
    if (wrong != std::errc() || part < 0) return std::nullopt;
    if (rest == end) return version;
    if (*rest != '.') return std::nullopt;
    text = {rest + 1, end};
  }
  return std::nullopt;
}

bool has_newer_profile(const Engine& engine) {
  return std::ranges::any_of(detail::engine_profiles(), [&](const EngineProfile& other) {
    return other.engine.name == engine.name && is_before(engine.version, other.engine.version);
  });
}

// Whether the profile was read for a version that has none of its own: it holds from `since` on,
// and for repairs of its own version (5.16.1 of 5.16.0). Behind the newest profile nobody has
// looked: SGLang and llama-cpp-python count releases there.
bool holds_for(const Engine& engine, const Version& asked) {
  const auto from = version_of(engine.since.empty() ? engine.version : engine.since);
  const auto to = version_of(engine.version);
  const bool repairs = to && asked[0] == (*to)[0] && asked[1] == (*to)[1];
  return from && to && *from <= asked && (asked <= *to || (repairs && has_newer_profile(engine)));
}

std::string engine_names() {
  std::string text;
  for (const EngineProfile& profile : detail::engine_profiles())
    text += (text.empty() ? "" : ", ") + std::string(profile.engine.name) + "@" +
            std::string(profile.engine.version);
  return text;
}

// The words of each profile's families in order: fleets ask for one of some hundred, and often.
const std::vector<std::string_view>& families_of(const EngineProfile& profile) {
  static const auto by_profile = [] {
    std::map<const EngineProfile*, std::vector<std::string_view>> all;
    for (const EngineProfile& each : detail::engine_profiles()) {
      all[&each] = detail::split(each.families).list();
      std::ranges::sort(all[&each]);
    }
    return all;
  }();
  return by_profile.at(&profile);
}

bool has_class(const EngineProfile& profile, std::string_view family) {
  if (profile.families.empty() || family.empty()) return true;
  const auto has = [&families = families_of(profile)](std::string_view word) {
    return std::ranges::binary_search(families, word);
  };
  return has(family) != has("-");
}

FileFormat format_of(const Model& model) {
  return model.files.empty() ? FileFormat::config : model.files.front().format;  // bundled ones are
}

// Dual chunk attention runs in SGLang, and ran in vLLM before 0.11 (vllm#25351); vLLM since then
// hands it to an attention that does not know it.
void read_chunks(std::string_view engine, std::string_view version, Rope& rope,
                 detail::EngineRope& reading) {
  const auto* chunks = std::get_if<DualChunk>(&rope.distance_map);
  if (!chunks || engine == "sglang") return;
  if (engine == "vllm" && !version.empty() && is_before(version, "0.11")) return;
  const std::string within = std::to_string(chunks->chunk()) + " tokens";
  if (engine == "vllm")
    return reading.refuse(
        "vLLM since 0.11 has no dual chunk attention and ends with TypeError (layer_idx): take "
        "dual_chunk_attention_config out of config.json, which changes nothing for texts up to " +
        within);
  reading.lost("dual_chunk_attention_config is not read: beyond the first chunk of " + within +
               " it rotates plainly");
  rope.distance_map = {};
}

}  // namespace

bool is_before(std::string_view version, std::string_view other) {
  const auto first = version_of(version), second = version_of(other);
  return first && second && *first < *second;
}

std::vector<Engine> engines() {
  std::vector<Engine> all;
  for (const EngineProfile& profile : detail::engine_profiles()) all.push_back(profile.engine);
  return all;
}

Expected<Engine> find_engine(std::string_view name) {
  POSENC_TRY(profile, detail::find_profile(name));
  return profile->engine;
}

Expected<void> read_as(const Model& model, std::string_view engine, std::int64_t length,
                       EngineReading& out) {
  if (length < 0) return fail("engine", "length must be 0 or more", std::to_string(length));
  POSENC_TRY(profile, detail::find_profile(engine));
  out.engine = profile->engine;
  out.model = model;
  out.asked_version.clear();
  out.refused.clear();
  out.reads_format = out.has_class = true;
  out.notes.clear();
  out.table_rows.reset();
  const std::string asked(engine.substr(std::min(engine.find('@'), engine.size() - 1) + 1));
  if (engine.contains('@') && !is_version(profile->engine.version, asked)) {
    if (holds_for(profile->engine, version_of(asked).value_or(Version{})))
      out.asked_version = asked;
    else
      out.notes.push_back({EngineNote::Kind::approximated,
                           "no profile of " + asked + ": that of " +
                               std::string(profile->engine.version) + " stands for it"});
  }
  if (const std::string_view format = name(format_of(model));
      !contains_word(profile->formats, format)) {
    out.refused = format_of(model) == FileFormat::gguf && !profile->on_gguf.empty()
                      ? std::string(profile->on_gguf)
                      : std::string(profile->engine.title) + " reads no " + std::string(format);
    out.reads_format = false;
    return {};
  }
  out.has_class = has_class(*profile, model.family);
  for (LayerGroup& group : out.model.groups) {
    for (Scheme& scheme : group.schemes) {
      Rope* rope = std::get_if<Rope>(&scheme);
      if (!rope) continue;
      detail::EngineRope reading(model, length, group, *rope, out);
      if (!detail::engines_have(rope->scaling))
        reading.refuse("it knows no " + std::string(info(rope->scaling).name) + " scaling");
      profile->read(reading);
      read_chunks(profile->engine.name, asked, *rope, reading);
    }
  }
  // What a class that the engine lacks would refuse, nobody knows.
  if (!out.has_class) out.refused.clear();
  if (!out.refused.empty()) out.model = model;
  return {};
}

Expected<EngineReading> read_as(const Model& model, std::string_view engine, std::int64_t length) {
  EngineReading out;
  POSENC_CHECK(read_as(model, engine, length, out));
  return out;
}

namespace detail {

Expected<const EngineProfile*> find_profile(std::string_view asked) {
  const std::size_t at = asked.find('@');
  const std::string_view name = asked.substr(0, at);
  // Most ask by the name itself.
  if (at == asked.npos)
    for (const EngineProfile& profile : engine_profiles())
      if (profile.engine.name == name) return &profile;
  std::vector<const EngineProfile*> known;
  for (const EngineProfile& profile : engine_profiles())
    if (is_called(profile.engine, name)) known.push_back(&profile);
  if (!known.empty() && at == asked.npos) return known.front();
  // A program reads files as the engine within it does: LM Studio as llama.cpp.
  if (const TypedTarget* program = known.empty() ? find_typed(name) : nullptr)
    return find_profile(program->engine);
  const std::string_view wanted = at == asked.npos ? "" : asked.substr(at + 1);
  for (const EngineProfile* profile : known)
    if (is_version(profile->engine.version, wanted)) return profile;
  const auto version = version_of(wanted);
  if (!known.empty() && version) {
    for (const EngineProfile* profile : known)
      if (holds_for(profile->engine, *version)) return profile;
    // Of the same first number, or the newest of all.
    for (const EngineProfile* profile : known)
      if (version_of(profile->engine.version).value_or(Version{})[0] == (*version)[0])
        return profile;
    return known.front();
  }
  return fail("engine",
              known.empty() ? "must be one that has a profile" : "must be a version, such as 5.12",
              asked, "choose among " + engine_names());
}

std::span<const EngineProfile> engine_profiles() {
  static const EngineProfile all[] = {transformers_profile,
                                      transformers5_12_profile,
                                      transformers4_profile,
                                      vllm_profile,
                                      sglang_profile,
                                      llama_cpp_profile,
                                      ollama_profile,
                                      mlx_lm_profile,
                                      exllamav3_profile,
                                      exllamav2_profile,
                                      onnxruntime_genai_profile,
                                      tensorrt_llm_profile,
                                      lmdeploy_profile,
                                      tgi_profile,
                                      lightllm_profile,
                                      deepspeed_profile,
                                      megatron_profile};
  return all;
}

FileFormat EngineRope::format() const { return format_of(model); }

bool EngineRope::model_is(std::string_view families) const {
  return contains_word(families, model.family);
}

bool EngineRope::is_new_spelling(std::string_view field) const {
  return states(field) && key(field).contains("rope_parameters.");
}

bool EngineRope::is_by_layer_type(std::string_view field) const {
  const std::string path = key(field);
  const std::size_t at = path.find("rope_parameters.");
  return states(field) && at != path.npos && std::ranges::count(path.substr(at), '.') > 1;
}

bool EngineRope::is_latent() const { return group_.cache_note.contains("MLA"); }

bool EngineRope::is_sliding() const { return group_.window.has_value(); }

bool EngineRope::has_several_bases() const {
  std::optional<double> first;
  for (const LayerGroup& group : model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const Rope* one = std::get_if<Rope>(&scheme); one && group.stack == group_.stack) {
        if (first && *first != one->rope_theta) return true;
        first = one->rope_theta;
      }
  return false;
}

bool EngineRope::warned(std::string_view code) const {
  return std::ranges::any_of(model.warnings, [&](const Warning& one) { return one.code == code; });
}

Expected<Plan> EngineRope::plan() const {
  LayerGroup now = group_;
  now.schemes = {rope};
  return compile(now, length);
}

double EngineRope::amplitude() const {
  const Expected<Plan> now = plan();
  return now && now->rotate ? now->rotate->amplitude : 1;
}

std::int64_t EngineRope::rotated_channels() const {
  const Expected<Plan> now = plan();
  return now && now->rotate ? now->rotate->slice.rotary_dim : 0;
}

std::optional<std::string_view> EngineRope::stated(std::string_view field) const {
  for (const Provenance& value : group_.provenance)
    if (value.field == field && value.origin == Origin::file) return value.value;
  return std::nullopt;
}

std::optional<double> EngineRope::stated_number(std::string_view field) const {
  const auto text = stated(field);
  if (!text) return std::nullopt;
  const Expected<Json> json = parse_json(*text, field);
  if (!json) return std::nullopt;
  if (const auto* whole = json->get<std::int64_t>()) return static_cast<double>(*whole);
  const auto* number = json->get<double>();
  return number ? std::optional(*number) : std::nullopt;
}

std::string EngineRope::scaling_name() const {
  const bool own_ntk =
      std::ranges::find(group_.provenance, "ntk", &Provenance::field) != group_.provenance.end();
  return own_ntk ? "NTK" : std::string(info(rope.scaling).name);
}

std::string EngineRope::key(std::string_view field) const {
  for (const Provenance& value : group_.provenance)
    if (value.field == field && value.origin == Origin::file) return value.detail;
  return std::string(field);
}

void EngineRope::scale_logits(double by) { group_.logits.multiplier *= by; }

bool EngineRope::has_temperature() const {
  return group_.logits.temperature != Logits{}.temperature;
}

void EngineRope::lose_temperature() {
  group_.logits.temperature = Logits{}.temperature;
  group_.logits.beta = Logits{}.beta;
  group_.logits.floor = Logits{}.floor;
  group_.logits.offset = Logits{}.offset;
  group_.logits_note.clear();
}

void EngineRope::refuse(std::string why) {
  if (out_.refused.empty()) out_.refused = std::move(why);
}

void EngineRope::table_rows(std::int64_t rows) {
  out_.table_rows = std::min(out_.table_rows.value_or(rows), rows);
}

void EngineRope::serves(std::int64_t tokens) { out_.model.context = tokens; }

void EngineRope::note(EngineNote::Kind kind, std::string what) {
  EngineNote one{kind, std::move(what)};
  if (std::ranges::find(out_.notes, one) == out_.notes.end()) out_.notes.push_back(std::move(one));
}

void refuse_with_transformers(EngineRope& rope) {
  if (rope.warned("factor_missing"))
    rope.refuse("a scaling without its factor is a KeyError there: write it");
  if (rope.stated("rope_type") == "su" &&
      !rope.key("original_max_position_embeddings").contains('.'))
    rope.refuse(
        "type su needs original_max_position_embeddings beside it in the scaling: write type "
        "longrope");
}

bool is_named_ntk(EngineRope& rope) {
  const auto type = rope.stated("rope_type");
  return rope.scaling<NtkAware>() && type && type->starts_with("ntk") &&
         rope.format() == FileFormat::config;
}

void refuse_named_ntk(EngineRope& rope, std::string_view error) {
  if (!is_named_ntk(rope)) return;
  const std::string type(*rope.stated("rope_type"));
  rope.refuse("no scaling is called " + type + " there (" + std::string(error) +
              (error == "KeyError" ? ": '" + type + "'" : "") +
              "): NTK-aware scaling is a larger rope_theta");
}

void fix_dynamic(EngineRope& rope) {
  const auto* dynamic = rope.scaling<DynamicNtk>();
  if (!dynamic) return;
  const double s = dynamic->factor;
  rope.fixed("dynamic: the base is grown once, for " + number_text(s) +
             " times max_position_embeddings, and short texts have it too");
  // b·(s·l/M − s + 1)^(d/(d−2)) at l = s·M is what NTK-aware scaling by s² − s + 1 has.
  rope.rope.scaling = NtkAware{.factor = s * s - s + 1};
}

void fix_longrope(EngineRope& rope, std::int64_t served) {
  auto* longrope = rope.scaling<LongRope>();
  if (!longrope) return;
  const bool beyond = served > longrope->original_max_position_embeddings;
  rope.fixed("longrope: the " + std::string(beyond ? "long" : "short") + " list at every length" +
             (served > 0 ? ", as it is started for " + std::to_string(served) + " tokens" : ""));
  (beyond ? longrope->short_factor : longrope->long_factor) =
      beyond ? longrope->long_factor : longrope->short_factor;
  (beyond ? longrope->short_mscale : longrope->long_mscale) =
      beyond ? longrope->long_mscale : longrope->short_mscale;
}

void take_long_list(EngineRope& rope) {
  auto* longrope = rope.scaling<LongRope>();
  if (!longrope) return;
  rope.fixed("longrope: the long list at every length");
  longrope->short_factor = longrope->long_factor;
  longrope->short_mscale = longrope->long_mscale;
}

void lose_attention_factor(EngineRope& rope) {
  const auto drop = [&](std::optional<double>& attention_factor) {
    if (!attention_factor) return;
    rope.lost(rope.key("attention_factor") +
              " is not read: cos and sin are multiplied by what follows from the factor");
    attention_factor.reset();
  };
  if (auto* yarn = rope.scaling<Yarn>()) drop(yarn->attention_factor);
  if (auto* longrope = rope.scaling<LongRope>()) drop(longrope->attention_factor);
}

void lose_betas(EngineRope& rope, std::string_view why) {
  auto* yarn = rope.scaling<Yarn>();
  if (!yarn || (yarn->beta_fast == 32 && yarn->beta_slow == 1)) return;
  rope.lost(std::string(why));
  yarn->beta_fast = 32;
  yarn->beta_slow = 1;
}

void lose_longrope_amplitude(EngineRope& rope) {
  auto* longrope = rope.scaling<LongRope>();
  if (!longrope) return;
  lose_attention_factor(rope);
  if (!longrope->factor) return;
  rope.lost(
      rope.key("factor") +
      " is not read by longrope: the factor is max_position_embeddings over the trained length");
  longrope->factor.reset();
}

void read_type_first(EngineRope& rope) {
  const auto type = rope.stated("unused_type");
  if (!type) return;
  if (type == "linear")
    rope.rope.scaling = Linear{.factor = rope.stated_number("factor").value_or(1)};
  else
    rope.refuse("type is read before rope_type, and they differ: keep one");
  rope.lost(rope.key("rope_type") + " is not read beside " + rope.key("unused_type"));
}

void lose_rope_parameters(EngineRope& rope, double theta) {
  if (rope.is_new_spelling("rope_type") && !rope.scaling<Unscaled>())
    lose_scaling(rope, "the class reads rope_scaling and nothing of rope_parameters");
  // The sliding layers of Gemma have a base of their own, which is the same everywhere; ChatGLM's
  // code stands beside its weights and reads rope_ratio.
  if (rope.is_sliding() || rope.model_is("chatglm")) return;
  if (rope.is_new_spelling("rope_theta"))
    default_base(rope, rope.stated_number("unused_rope_theta").value_or(theta));
  else if (!rope.states("rope_theta"))
    default_base(rope, theta);
}

void read_mscales(EngineRope& rope) {
  auto* longrope = rope.scaling<LongRope>();
  if (!longrope) return;
  longrope->short_mscale = rope.stated_number("short_mscale");
  longrope->long_mscale = rope.stated_number("long_mscale");
}

void default_base(EngineRope& rope, double theta) {
  if (rope.rope.rope_theta == theta) return;
  rope.defaulted("the base is " + number_text(theta) + ": no rope_theta where it is looked for");
  rope.rope.rope_theta = theta;
}

void lose_partial(EngineRope& rope) {
  rope.lost(rope.key("partial_rotary_factor") + " is not read for this family: whole heads rotate");
  rope.rope.partial_rotary_factor = 1;
}

void default_mscales(EngineRope& rope) {
  auto* yarn = rope.scaling<Yarn>();
  if (!yarn || !yarn->factor || (yarn->mscale && yarn->mscale_all_dim)) return;
  const double s = *yarn->factor;
  const double amplitude = yarn_magnitude(s, yarn->mscale.value_or(1)) /
                           yarn_magnitude(s, yarn->mscale_all_dim.value_or(0));
  if (amplitude == rope.amplitude()) return;
  rope.defaulted("of mscale and mscale_all_dim one is not in the file: 1 and 0 stand for them");
  yarn->attention_factor = amplitude;
}

void lose_original_length(EngineRope& rope, LongRope& longrope) {
  if (rope.model.context <= 0) return;
  rope.lost(rope.key("original_max_position_embeddings") +
            " is not read there: the trained length is max_position_embeddings");
  longrope.original_max_position_embeddings = rope.model.context;
}

void default_original_length(EngineRope& rope, std::int64_t length) {
  constexpr std::string_view field = "original_max_position_embeddings";
  if (rope.states(field) && rope.key(field).contains('.')) return;  // in the scaling itself
  const auto set = [&](std::int64_t& now) {
    if (now == length) return;
    rope.defaulted(std::string(field) + " is not in the scaling: " + std::to_string(length) +
                   " is taken");
    now = length;
  };
  if (auto* yarn = rope.scaling<Yarn>()) set(yarn->original_max_position_embeddings);
  if (auto* llama3 = rope.scaling<Llama3>()) set(llama3->original_max_position_embeddings);
}

void always_truncate(EngineRope& rope) {
  auto* yarn = rope.scaling<Yarn>();
  if (!yarn || yarn->truncate) return;
  rope.approximated("truncate false is not read: the ramp's ends are rounded to whole pairs");
  yarn->truncate = true;
}

bool engines_have(const Scaling& scaling) {
  const auto is_one_of = [&]<class... S>(std::type_identity<std::variant<S...>>) {
    return (std::holds_alternative<S>(scaling) || ...);
  };
  return is_one_of(std::type_identity<std::variant<Unscaled, Linear, NtkAware, DynamicNtk, Yarn,
                                                   LongRope, Llama3, Proportional>>{});
}

void lose_scaling(EngineRope& rope, std::string_view why) {
  rope.lost(rope.scaling_name() + " scaling: " + std::string(why));
  rope.rope.scaling = Unscaled{};
}

void lose_factor_of_nomic(EngineRope& rope) {
  if (rope.scaling<DynamicNtk>() && rope.key("factor") == "rotary_scaling_factor")
    lose_scaling(rope, "rotary_scaling_factor is not read; the code beside the weights reads it");
}

void take_ratio_for_base(EngineRope& rope) {
  const auto* linear = rope.model_is("chatglm") ? rope.scaling<Linear>() : nullptr;
  if (!linear || rope.key("factor") != "rope_ratio") return;
  rope.lost(
      "rope_ratio multiplies the base, as in ChatGLM3: ChatGLM2's own code divides positions");
  rope.rope.rope_theta *= linear->factor;
  rope.rope.scaling = Unscaled{};
}

void lose_growth_of_qwen(EngineRope& rope) {
  if (!rope.model_is("qwen")) return;
  const bool base = rope.stated("use_dynamic_ntk") != "false", logits = rope.has_temperature();
  if (!base && !logits) return;
  rope.lose_temperature();
  rope.lost(std::string(base && logits ? "use_dynamic_ntk and use_logn_attn are"
                        : base         ? "use_dynamic_ntk is"
                                       : "use_logn_attn is") +
            " read by the model's own code alone: beyond seq_length " +
            (base && logits ? "neither the base nor the logits grow"
             : base         ? "the base does not grow"
                            : "the logits do not grow"));
}

void round_tables(EngineRope& rope) {
  const std::string& dtype = rope.model.dtype;
  if (dtype == "bfloat16" || dtype == "float16") rope.rounded("cos and sin are kept in " + dtype);
}

void lose_proportional_factor(EngineRope& rope) {
  auto* proportional = rope.scaling<Proportional>();
  if (!proportional || proportional->factor == 1) return;
  rope.lost(rope.key("factor") + " is not read by proportional scaling");
  proportional->factor = 1;
}

}  // namespace detail
}  // namespace posenc
