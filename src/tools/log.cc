// What an engine was told, read off the lines that it prints when it starts, and where that is not what the model's file
// says: the model with the told values put in is compared with the model itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/text/json.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

using detail::grouped, detail::nearly;

constexpr std::size_t longest_line = std::size_t{1} << 20, longest_value = std::size_t{1} << 16;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// Without the codes that colour a terminal.
std::string plain(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
      continue;
    }
    out += line[i];
  }
  return out;
}

std::optional<double> number_in(std::string_view text) {
  text = trimmed(text);
  const std::size_t end = text.find_first_not_of("0123456789.eE+-");
  if (end == 0 || text.empty()) return {};
  const Expected<detail::Json> json = detail::parse_json(text.substr(0, end), "log");
  if (!json) return {};
  const double* real = json->get<double>();
  const std::int64_t* whole = json->get<std::int64_t>();
  const double value = whole ? static_cast<double>(*whole) : real ? *real : NAN;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The number behind the first `before` in a line.
std::optional<double> number_after(std::string_view line, std::string_view before) {
  const std::size_t at = line.find(before);
  if (at == line.npos) return {};
  return number_in(line.substr(at + before.size(), 64));
}

// Of a Python dict as its repr shows it, JSON; what stands behind the closing brace is left out. Nothing: no dict.
std::optional<std::string> json_of_repr(std::string_view text) {
  if (!text.starts_with('{')) return {};
  text = text.substr(0, longest_value);
  std::string json;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == '\\' && i + 1 < text.size()) {
        if (text[i + 1] != '\'') json += c;
        json += text[++i];
      } else if (c == quote) {
        json += '"';
        quote = 0;
      } else {
        json += c == '"' ? std::string("\\\"") : std::string(1, c);
      }
      continue;
    }
    if (c == '\'' || c == '"') {
      quote = c;
      json += '"';
      continue;
    }
    constexpr std::pair<std::string_view, std::string_view> words[] = {
        {"None", "null"}, {"True", "true"}, {"False", "false"}};
    const auto word = std::ranges::find_if(
        words, [&](const auto& one) { return text.substr(i).starts_with(one.first); });
    if (word != std::end(words)) {
      json += word->second;
      i += word->first.size() - 1;
      continue;
    }
    json += c;
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth == 0) return json;
  }
  return {};
}

// One thing that a log says, and the line that says it last.
struct Said {
  double number = 0;
  std::string text = {};  // the value as it stands there
  std::int64_t line = 0;
};

struct Log {
  std::map<std::string, Said, std::less<>> said = {};
  std::vector<Finding> remarks = {};  // what a line says by itself
  std::int64_t known = 0;             // lines that say anything

  const Said* find(std::string_view what) const {
    const auto at = said.find(what);
    return at == said.end() ? nullptr : &at->second;
  }
};

// Names of values: as llama.cpp prints them, as its converter does, and as keys of a GGUF end.
struct LogName {
  std::string_view printed, what;
};
constexpr LogName llama_names[] = {
    {"n_ctx_train", "context"},      {"n_layer", "layers"},        {"n_head", "heads"},
    {"n_head_kv", "kv_heads"},       {"n_rot", "rotary_dim"},      {"n_swa", "window"},
    {"rope scaling", "type"},        {"freq_base_train", "base"},  {"freq_base", "base_used"},
    {"freq_scale_train", "scale"},   {"freq_scale", "scale_used"}, {"n_ctx_orig_yarn", "original"},
    {"n_yarn_orig_ctx", "original"}, {"n_ctx", "n_ctx"},           {"n_ctx_per_seq", "n_ctx"},
    {"n_ctx_seq", "n_ctx"},          {"rope type", "rope_type"},   {"rope_finetuned", "finetuned"}};
constexpr LogName converter_names[] = {
    {"context length", "context"},        {"head count", "heads"},
    {"key-value head count", "kv_heads"}, {"rope theta", "base"},
    {"rope scaling type", "type"},        {"rope scaling factor", "factor"}};
constexpr LogName key_endings[] = {{".context_length", "context"},
                                   {".block_count", "layers"},
                                   {".attention.head_count", "heads"},
                                   {".attention.head_count_kv", "kv_heads"},
                                   {".rope.dimension_count", "rotary_dim"},
                                   {".rope.freq_base", "base"},
                                   {".rope.scaling.type", "type"},
                                   {".rope.scaling.factor", "factor"},
                                   {".rope.scaling.original_context_length", "original"}};

class LogReader {
 public:
  Expected<Log> read(std::string_view text) {
    std::int64_t number = 0;
    while (!text.empty()) {
      ++number;
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (end > longest_line)
        return fail("log", "a line must be at most 1 MiB", "more on line " + std::to_string(number),
                    "give the text that the engine prints, and no tensors");
      const std::string_view line = text.substr(0, end);
      if (line.contains('\0'))
        return fail("log", "must be text", "a zero byte on line " + std::to_string(number),
                    "give the text that the engine prints");
      line_ = number;
      read_line(plain(line));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::move(log_);
  }

 private:
  void say(std::string_view what, std::string_view value) {
    const auto found = number_in(value);
    log_.said[std::string(what)] = {found.value_or(0), printable(value), line_};
    ++log_.known;
  }
  void remark(Finding finding) {
    finding.line = line_;
    ++log_.known;
    const auto same = [&](const Finding& old) {
      return old.code == finding.code && old.found == finding.found;
    };
    if (std::ranges::none_of(log_.remarks, same)) log_.remarks.push_back(std::move(finding));
  }

  // "name = value" of one of these names.
  void assignment(std::string_view text, std::span<const LogName> names) {
    const std::size_t at = text.find('=');
    if (at == text.npos) return;
    const std::string_view name = trimmed(text.substr(0, at));
    const auto known = std::ranges::find(names, name, &LogName::printed);
    if (known != names.end()) say(known->what, trimmed(text.substr(at + 1)));
  }

  void read_line(const std::string& line) {
    const auto behind = [&](std::string_view marker) -> std::optional<std::string_view> {
      const std::size_t at = line.find(marker);
      return at == line.npos ? std::nullopt
                             : std::optional(std::string_view(line).substr(at + marker.size()));
    };
    for (const std::string_view marker : {"print_info:", "llm_load_print_meta:", "llama_context:",
                                          "llama_new_context_with_model:"}) {
      if (const auto rest = behind(marker)) assignment(*rest, llama_names);
    }
    if (const auto rest = behind("gguf: ")) assignment(*rest, converter_names);
    if (const auto rest = behind("- kv ")) key_of_gguf(*rest);
    if (const auto rest = behind("Unknown RoPE type: "))
      remark({.code = "unknown_rope_type",
              .found = printable(*rest, 60),
              .message = "the converter knows no such scaling and writes the model without it",
              .cure = "convert with a newer converter, and compare: posenc diff config.json FILE"});
    vllm(line);
    hugging_face(line);
  }

  // "  10:   llama.rope.freq_base f32 = 500000.000000"
  void key_of_gguf(std::string_view text) {
    const std::size_t colon = text.find(':'), equals = text.find(" = ");
    if (colon == text.npos || equals == text.npos || colon > equals) return;
    const std::string_view name = trimmed(text.substr(colon + 1, equals - colon - 1));
    const std::string_view key = name.substr(0, name.find(' '));
    for (const LogName& one : key_endings)
      if (key.ends_with(one.printed)) say(one.what, trimmed(text.substr(equals + 3)));
  }

  void dict(std::string_view line, std::string_view name) {
    for (const char* between : {"=", "': ", "\": "}) {
      const std::string start = std::string(name) + between;
      const std::size_t at = line.find(start);
      if (at == line.npos) continue;
      const auto json = json_of_repr(line.substr(at + start.size()));
      if (!json) continue;
      log_.said[std::string(name)] = {0, *json, line_};
      ++log_.known;
    }
  }

  void vllm(std::string_view line) {
    for (const char* name : {"rope_scaling", "rope_parameters", "hf_overrides"}) dict(line, name);
    if (line.contains("rope_theta=") && line.contains("rope_scaling="))
      if (number_after(line, "rope_theta="))
        say("base", line.substr(line.find("rope_theta=") + 11));
    for (const char* name : {"max_seq_len=", "max_model_len=", "'max_model_len': "})
      if (number_after(line, name))
        say("n_ctx", line.substr(line.find(name) + std::string_view(name).size()));
    // RotaryEmbedding(head_size=128, rotary_dim=128, max_position_embeddings=…, base=500000, is_neox_style=True)
    if (line.contains("head_size=") && line.contains("rotary_dim=") && line.contains("base=")) {
      say("rotary_dim", line.substr(line.find("rotary_dim=") + 11));
      say("base", line.substr(line.find("base=") + 5));
      if (const std::size_t at = line.find("is_neox_style="); at != line.npos)
        say("halves", line.substr(at + 14).starts_with("True") ? "1" : "0");
    }
    if (line.contains("is greater than the derived max_model_len"))
      remark({.code = "context_refused",
              .message = "vLLM was asked for more tokens than it derives from the file",
              .cure = "posenc extend MODEL --to LENGTH --engine vllm writes the scaling for it"});
  }

  void hugging_face(std::string_view line) {
    if (const std::size_t at = line.find("Unrecognized keys in `rope_"); at != line.npos) {
      const std::size_t keys = line.find('{', at);
      remark({.code = "unknown_key",
              .severity = Severity::warning,
              .found = keys == line.npos ? "" : printable(trimmed(line.substr(keys)), 100),
              .message = "transformers does not read these keys: what they should do does not "
                         "happen there, and other engines may read them",
              .cure = "posenc diff MODEL --engines all tells which engine reads them"});
    }
    for (const char* before : {"exceed the model's predefined maximum length (",
                               "specified maximum sequence length for this model ("})
      if (const auto length = number_after(line, before))
        remark({.code = "beyond_context",
                .severity = Severity::warning,
                .found = grouped(std::llround(std::min(*length, 0x1p50))),
                .message = "a text was longer than the model's context: angles that training has "
                           "not shown",
                .cure = "ask for less, or plan a longer context: posenc extend MODEL --to LENGTH"});
    if (line.contains("exceeds the training context of the model"))
      remark({.code = "context_capped",
              .severity = Severity::warning,
              .message = "llama-server caps the context at the file's own",
              .cure = "posenc extend MODEL --to LENGTH --engine llama.cpp writes the flags that "
                      "lift it"});
  }

  Log log_;
  std::int64_t line_ = 0;
};

// Keys of a scaling that an engine replaced the file's by: the rope as it is with them.
class ToldRope {
 public:
  ToldRope(const Rope& rope, const Said& said, std::vector<Finding>& findings)
      : rope_(rope), said_(said), findings_(findings) {}

  std::optional<Rope> read(const detail::Json& dict, bool replaces) {
    const detail::Json* type = dict.find("rope_type");
    if (!type) type = dict.find("type");
    const std::string* word = type ? type->get<std::string>() : nullptr;
    if (!word) {
      if (const auto* members = dict.get<detail::Json::Object>(); !members || members->empty())
        return {};
      remark("type_missing", "", "a scaling without rope_type: engines refuse it, or take none",
             "write rope_type");
      return {};
    }
    Rope told = rope_;
    told.scaling = Unscaled{};
    if (const detail::Json* theta = dict.find("rope_theta"))
      told.rope_theta = real(*theta).value_or(told.rope_theta);
    else if (replaces && rope_.rope_theta != 10000) {
      told.rope_theta = 10000;
      remark("theta_missing", "10000",
             "an override replaces all of rope_parameters: without rope_theta the base is 10000",
             "write rope_theta " + number_text(rope_.rope_theta) + " beside rope_type");
    }
    if (*word == "default" || *word == "mrope") return told;
    detail::JsonWriter out;
    out.object().member("type", "rope").member("rope_theta", told.rope_theta);
    out.key("scaling").object().member("type", *word);
    for (const detail::JsonMember& member : *dict.get<detail::Json::Object>()) {
      if (!is_field(member.key)) continue;
      if (const auto* whole = member.value.get<std::int64_t>())
        out.member(member.key, *whole);
      else if (const auto value = real(member.value))
        out.member(member.key, *value);
    }
    fill(*word, dict, out);
    out.end().end();
    const Expected<Scheme> scheme = read_scheme(out.text);
    if (!scheme) {
      remark("scaling_unread", *word, scheme.error().message(), "");
      return {};
    }
    told.scaling = std::get<Rope>(*scheme).scaling;
    return told;
  }

 private:
  static std::optional<double> real(const detail::Json& json) {
    if (const auto* whole = json.get<std::int64_t>()) return static_cast<double>(*whole);
    const auto* number = json.get<double>();
    return number && std::isfinite(*number) ? std::optional(*number) : std::nullopt;
  }
  static bool is_field(std::string_view key) {
    constexpr std::string_view known[] = {"factor",
                                          "original_max_position_embeddings",
                                          "max_position_embeddings",
                                          "beta_fast",
                                          "beta_slow",
                                          "attention_factor",
                                          "mscale",
                                          "mscale_all_dim",
                                          "low_freq_factor",
                                          "high_freq_factor"};
    return std::ranges::find(known, key) != std::end(known);
  }
  // dynamic NTK's limit stands outside of the scaling.
  void fill(std::string_view word, const detail::Json& dict, detail::JsonWriter& out) const {
    if (word != "dynamic" || dict.find("max_position_embeddings")) return;
    const auto* own = std::get_if<DynamicNtk>(&rope_.scaling);
    out.member("max_position_embeddings", own ? own->max_position_embeddings : context);
  }
  void remark(std::string code, std::string found, std::string message, std::string cure) {
    findings_.push_back({.code = std::move(code),
                         .found = printable(found),
                         .message = std::move(message),
                         .cure = std::move(cure),
                         .line = said_.line});
  }

  const Rope& rope_;
  const Said& said_;
  std::vector<Finding>& findings_;

 public:
  std::int64_t context = 1;
};

class LogDifferences {
 public:
  LogDifferences(const Model& model, Log log) : model_(model), log_(std::move(log)) {}

  Expected<std::vector<Finding>> run(std::int64_t length) {
    findings_ = log_.remarks;
    Model told = model_;
    for (LayerGroup& group : told.groups)
      if (group.stack != Stack::vision) put_in(group);
    sizes();
    POSENC_TRY(differ, differences(model_, told, length));
    for (Finding& finding : differ) {
      if (const std::int64_t line = line_of(finding.code)) finding.line = line;
      findings_.push_back(std::move(finding));
    }
    context(told, length);
    if (log_.known == 0)
      findings_.push_back({.code = "log_unknown",
                           .severity = Severity::warning,
                           .message = "no line of llama.cpp, its converter, vLLM or transformers "
                                      "that tells anything about position",
                           .cure = "give what the engine prints when it loads the model; "
                                   "llama-server wants -v, vLLM its first lines"});
    std::ranges::stable_sort(findings_, {}, &Finding::severity);
    return std::move(findings_);
  }

 private:
  const Said* positive(std::string_view what) const {
    const Said* said = log_.find(what);
    return said && said->number > 0 ? said : nullptr;
  }

  // The last of these that the log has.
  const Said* used(std::string_view at_last, std::string_view before) const {
    const Said* said = positive(at_last);
    return said ? said : positive(before);
  }

  std::int64_t line_of(std::string_view code) const {
    if (overridden_ > 0) return overridden_;
    const auto line = [](const Said* said) { return said ? said->line : std::int64_t{0}; };
    if (code == "rope_theta") return line(used("base_used", "base"));
    if (code == "rotary_dim") return line(positive("rotary_dim"));
    if (code == "pairing") return line(log_.find("halves"));
    if (const std::int64_t scale = line(used("scale_used", "scale"))) return scale;
    return line(log_.find("factor") ? log_.find("factor") : log_.find("type"));
  }

  void put_in(LayerGroup& group) {
    Rope* rope = const_cast<Rope*>(detail::rope_of(group));
    if (!rope) return;
    // Layers with a window may rotate by a base of their own, of which these lines do not tell.
    const bool others = group.window && bases_differ();
    if (const Said* base = used("base_used", "base");
        base && !others && base->number > 1 && !is_of_a_layer(base->number))
      rope->rope_theta = base->number;
    if (const Said* halves = log_.find("halves"))
      rope->pairing = halves->number == 1 ? Pairing::halves : Pairing::interleaved;
    dimensions(group, *rope);
    if (!others) {
      scaling(*rope);
      overridden(*rope);
    }
  }

  // vLLM prints a line for each kind of layer.
  bool is_of_a_layer(double base) const {
    return std::ranges::any_of(model_.groups, [&](const LayerGroup& group) {
      const Rope* rope = detail::rope_of(group);
      return rope && nearly(rope->rope_theta, base);
    });
  }

  bool bases_differ() const {
    const Rope* first = nullptr;
    for (const LayerGroup& group : model_.groups) {
      const Rope* rope = detail::rope_of(group);
      if (!rope || group.stack == Stack::vision) continue;
      if (first && first->rope_theta != rope->rope_theta) return true;
      first = rope;
    }
    return false;
  }

  void dimensions(const LayerGroup& group, Rope& rope) const {
    const Said* dim = positive("rotary_dim");
    if (!dim || std::holds_alternative<Proportional>(rope.scaling) || dim->number > 1e6) return;
    const Expected<Plan> plan = compile(group);
    const std::int64_t told = std::llround(dim->number);
    if (!plan || !plan->rotate || plan->rotate->rotary_dim == told || told % 2 != 0) return;
    if (group.geometry.head_dim > 0 && told > group.geometry.head_dim) return;
    for (const LayerGroup& other : model_.groups) {
      const Expected<Plan> theirs = compile(other);
      if (theirs && theirs->rotate && theirs->rotate->rotary_dim == told) return;
    }
    rope.rotary_dim = told;
  }

  // llama.cpp's divisors are tensors, of which no line tells: a scaling that is made of them is not compared unless a
  // factor comes on top.
  void scaling(Rope& rope) const {
    const Said *scale = used("scale_used", "scale"), *factor = positive("factor"),
               *type = log_.find("type");
    if (!scale && !factor && !type) return;
    const double s = scale ? 1 / scale->number : factor ? factor->number : 1;
    const bool tensors = std::holds_alternative<Llama3>(rope.scaling) ||
                         std::holds_alternative<LongRope>(rope.scaling) ||
                         std::holds_alternative<Proportional>(rope.scaling) ||
                         std::holds_alternative<Explicit>(rope.scaling);
    const bool unknown = std::ranges::any_of(
        log_.remarks, [](const Finding& one) { return one.code == "unknown_rope_type"; });
    const bool none = type && (type->text == "none" || type->text == "NONE");
    if (tensors && nearly(s, 1) && !unknown) return;
    const Yarn* own = std::get_if<Yarn>(&rope.scaling);
    const bool yarn =
        type ? type->text.starts_with("yarn") || type->text.starts_with("YARN") : own != nullptr;
    if (!yarn) {
      rope.scaling = none || nearly(s, 1) ? Scaling(Unscaled{}) : Scaling(Linear{s});
      return;
    }
    Yarn told = own ? *own : Yarn{.original_max_position_embeddings = model_.context};
    if (scale || factor) told.factor = s;
    if (const Said* original = positive("original"); original && original->number < 0x1p50)
      told.original_max_position_embeddings = std::llround(original->number);
    if (told.original_max_position_embeddings > 0) rope.scaling = told;
  }

  // vLLM's own words: a dict for the whole scaling.
  void overridden(Rope& rope) {
    for (const char* name : {"rope_scaling", "rope_parameters", "hf_overrides"}) {
      const Said* said = log_.find(name);
      if (!said) continue;
      const Expected<detail::Json> json = detail::parse_json(said->text, name);
      if (!json) continue;
      const detail::Json* dict = &*json;
      bool replaces = std::string_view(name) == "rope_parameters";
      if (std::string_view(name) == "hf_overrides") {
        const detail::Json* inner = json->find("text_config");
        if (!inner) inner = &*json;
        dict = inner->find("rope_parameters");
        replaces = dict != nullptr;
        if (!dict) dict = inner->find("rope_scaling");
        if (!dict) continue;
      }
      std::vector<Finding> remarks;
      ToldRope told(rope, *said, remarks);
      told.context = std::max<std::int64_t>(model_.context, 1);
      const auto now = told.read(*dict, replaces);
      if (now) rope = *now, overridden_ = said->line;
      for (Finding& finding : remarks)
        if (std::ranges::find(findings_, finding) == findings_.end())
          findings_.push_back(std::move(finding));
    }
  }

  void sizes() {
    const LayerGroup* first = nullptr;
    for (const LayerGroup& group : model_.groups)
      if (!first && group.stack == Stack::text) first = &group;
    if (!first) return;
    const auto compare = [&](const char* what, std::int64_t expected) {
      const Said* said = positive(what);
      if (!said || expected == 0 || static_cast<double>(expected) == said->number) return;
      findings_.push_back({.code = what,
                           .severity = Severity::warning,
                           .expected = std::to_string(expected),
                           .found = number_text(said->number),
                           .message = "the log may be that of another model",
                           .cure = "compare the model that was loaded",
                           .line = said->line});
    };
    compare("layers", detail::layers_of(model_, Stack::text));
    compare("heads", first->geometry.heads);
    if (first->cache_note.contains("MLA"))
      return;  // llama.cpp counts one head for the compressed keys
    compare("kv_heads", first->geometry.kv_heads);
  }

  void context(const Model& told, std::int64_t length) {
    const Said *trained = positive("context"), *asked = positive("n_ctx");
    if (trained && model_.context > 0 && trained->number != static_cast<double>(model_.context))
      findings_.push_back({.code = "context",
                           .severity = Severity::warning,
                           .expected = grouped(model_.context),
                           .found = grouped(std::llround(std::min(trained->number, 0x1p50))),
                           .message = "the engine has another context from its file",
                           .cure = "compare max_position_embeddings with context_length",
                           .line = trained->line});
    // What the scaling reaches, as the engine was told it.
    if (!asked || length > 0) return;
    const double made_for = static_cast<double>(std::max(model_.context, reach(told)));
    if (made_for > 0 && asked->number > made_for)
      findings_.push_back({.code = "beyond_context",
                           .severity = Severity::warning,
                           .expected = grouped(std::llround(made_for)),
                           .found = grouped(std::llround(std::min(asked->number, 0x1p50))),
                           .message =
                               "the engine was started for more tokens than the model is made "
                               "for",
                           .cure = "posenc extend MODEL --to LENGTH plans a longer context",
                           .line = asked->line});
    else if (made_for > 0 && asked->number < made_for)
      findings_.push_back({.code = "context_shorter",
                           .severity = Severity::note,
                           .expected = grouped(std::llround(made_for)),
                           .found = grouped(std::llround(asked->number)),
                           .message = "the engine was started for fewer tokens than the model is "
                                      "made for",
                           .line = asked->line});
  }

  static std::int64_t reach(const Model& told) {
    double furthest = 0;
    for (const LayerGroup& group : told.groups) {
      const Rope* rope = detail::rope_of(group);
      if (!rope) continue;
      const auto factor = number_of(rope->scaling, "factor"),
                 original = number_of(rope->scaling, "original_max_position_embeddings");
      if (factor && original) furthest = std::max(furthest, *factor * *original);
    }
    return static_cast<std::int64_t>(std::min(furthest, 0x1p50));
  }

  const Model& model_;
  Log log_;
  std::vector<Finding> findings_;
  std::int64_t overridden_ = 0;
};

}  // namespace

Expected<std::vector<Finding>> log_differences(const Model& model, std::string_view log,
                                               std::int64_t length) {
  if (log.size() > largest_log)
    return fail("log", "must be at most 64 MiB", std::to_string(log.size()) + " bytes",
                "give its first lines: head -n 2000 FILE");
  POSENC_TRY(read, LogReader().read(log));
  return LogDifferences(model, std::move(read)).run(length);
}

}  // namespace posenc
