// Knows the lines that llama.cpp, its converter, vLLM and transformers print about position.
#include "src/tools/log_lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/small_letters.h"
#include "src/core/trimmed.h"
#include "src/explain/text.h"
#include "src/model/names.h"
#include "src/text/json.h"
#include "src/tools/client_settings.h"
#include "src/tools/log_loaders.h"
#include "src/tools/log_numbers.h"

namespace posenc::detail {
namespace {

constexpr std::size_t longest_line = std::size_t{1} << 20, longest_value = std::size_t{1} << 16;

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
  text = text.substr(0, end);
  if (text.ends_with('.')) text.remove_suffix(1);  // of the sentence
  const Expected<Json> json = parse_json(text, "log");
  if (!json) return {};
  const double* real = json->get<double>();
  const std::int64_t* whole = json->get<std::int64_t>();
  const double value = whole ? static_cast<double>(*whole) : real ? *real : NAN;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

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
    {"n_ctx_seq", "n_ctx"},          {"n_seq_max", "slots"},       {"rope type", "rope_type"},
    {"rope_finetuned", "finetuned"}, {"kv_unified", "unified"}};
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
                                   {".rope.scaling.attn_factor", "attn_factor"},
                                   {".rope.scaling.original_context_length", "original"}};

}  // namespace

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

std::string in_small_letters(std::string_view line) { return small_letters(line.substr(0, 400)); }

std::string told(double number) {
  constexpr double largest = 0x1p50;
  return grouped(std::llround(std::min(number, largest)));
}

std::optional<double> number_after(std::string_view line, std::string_view before) {
  const std::size_t at = line.find(before);
  if (at == line.npos) return {};
  // 262,144 is a number, and a comma behind one is not of it.
  std::string digits;
  const std::string_view text = trimmed(line.substr(at + before.size(), 64));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool groups =
        text[i] == ',' && i > 0 && i + 3 < text.size() &&
        std::ranges::all_of(text.substr(i + 1, 3), [](char c) { return c >= '0' && c <= '9'; });
    if (!groups) digits += text[i];
  }
  return number_in(digits);
}

std::vector<double> numbers_between(std::string_view line, std::size_t& at, std::string_view opens,
                                    char closes) {
  constexpr std::size_t longest = 80;
  std::vector<double> numbers;
  at = line.find(opens, at);
  if (at == line.npos) return numbers;
  at += opens.size();
  const std::size_t end = line.find(closes, at);
  if (end == line.npos || end - at > longest) return numbers;
  std::string_view inside = line.substr(at, end - at);
  at = end;
  while (!inside.empty()) {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    if (const auto number = number_after(inside.substr(0, comma), "")) numbers.push_back(*number);
    inside.remove_prefix(std::min(comma + 1, inside.size()));
  }
  return numbers;
}

void EngineLog::say(std::string_view what, std::string_view value, std::int64_t line) {
  said[std::string(what)] = {number_in(value).value_or(0), printable(value), line};
  ++known;
}

void EngineLog::say_by_key(std::string_view key, std::string_view value, std::int64_t line) {
  // Behind the architecture; that of a tower (gemma3.vision.block_count) has more in between.
  const std::string_view ending = key.substr(std::min(key.find('.'), key.size()));
  for (const LogName& one : key_endings) {
    if (ending != one.printed) continue;
    say(one.what, value, line);
    if (one.what == "context") said["context_key"] = {0, printable(key), line};
  }
}

void EngineLog::remark(Finding finding, std::int64_t line) {
  finding.line = line;
  ++known;
  const auto same = [&](const Finding& old) {
    return old.code == finding.code && (finding.found.empty() || old.found == finding.found);
  };
  if (std::ranges::any_of(remarks, same)) return;
  // Of requests that are too long for one limit the longest says it all, and of many alike three do.
  const auto is_alike = [&](const Finding& old) {
    return old.code == finding.code && !old.found.empty() && old.expected == finding.expected &&
           old.message == finding.message;
  };
  const auto is_same_limit = [&](const Finding& old) {
    return is_alike(old) && old.code == "request_too_long" && !old.expected.empty();
  };
  constexpr std::ptrdiff_t few = 3;
  auto shorter = std::ranges::find_if(remarks, is_same_limit);
  if (shorter == remarks.end() && std::ranges::count_if(remarks, is_alike) >= few)
    shorter = std::ranges::find_if(remarks, is_alike);
  if (shorter != remarks.end()) {
    if (number_after(finding.found, "") > number_after(shorter->found, ""))
      shorter->found = finding.found;
    return;
  }
  // The same again, with its numbers.
  const auto without = std::ranges::find_if(
      remarks, [&](const Finding& old) { return old.code == finding.code && old.found.empty(); });
  if (without != remarks.end())
    *without = std::move(finding);
  else
    remarks.push_back(std::move(finding));
}

namespace {

class LogReader {
 public:
  Expected<EngineLog> read(std::string_view text) {
    const std::string_view whole = text;
    // People put the traceback below its last line, too.
    constexpr std::size_t short_text = 4096;
    while (text.size() <= short_text && nearby_.size() < text.size())
      nearby_ += in_small_letters(text.substr(nearby_.size()));
    // `ollama show` prints the model's context before the line that tells whose it is, or without.
    const std::string_view start = whole.substr(0, short_text);
    const bool is_shown = start.contains("context length ") &&
                          start.contains("embedding length ") && start.contains("quantization ");
    if (is_shown || start.contains("num_ctx")) ollama_.notice("num_ctx");
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
      text.remove_prefix(std::min(end + 1, text.size()));
      behind_ = text;
      read_line(plain(line));
    }
    wrapped(whole);
    numbers_of_the_slot();
    cause_of_positions(in_batches(whole), whole);
    ollama_.judge(log_);
    of_sequences();
    if (log_.known == 0)
      if (auto client = client_settings(whole)) {
        line_ = 1;
        remark(*std::move(client));
      }
    // The same, said better by the line behind it.
    if (log_.remark_of("mrope_mask") || log_.remark_of("mrope_grid"))
      std::erase_if(log_.remarks, [](const Finding& one) { return one.code == "mrope_index"; });
    if (const Finding* full = log_.remark_of("context_full");
        full && full->message == latent_unshifted)
      std::erase_if(log_.remarks, [](const Finding& one) { return one.code == "context_shifted"; });
    return std::move(log_);
  }

 private:
  void say(std::string_view what, std::string_view value) { log_.say(what, value, line_); }
  void remark(Finding finding) { log_.remark(std::move(finding), line_); }

  // "name = value" of one of these names.
  void assignment(std::string_view text, std::span<const LogName> names) {
    const std::size_t at = text.find('=');
    if (at == text.npos) return;
    const std::string_view name = trimmed(text.substr(0, at));
    const auto known = std::ranges::find(names, name, &LogName::printed);
    if (known == names.end()) return;
    say(known->what, trimmed(text.substr(at + 1)));
    if (name == "n_ctx") log_.said["n_ctx_all"] = log_.said["n_ctx"];
    if (name == "n_ctx_seq") log_.said["n_ctx_each"] = log_.said["n_ctx"];
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
    if (const auto rest = behind("new slot, n_ctx = ")) say("n_ctx", *rest);
    if (const auto rest = behind("n_ctx_slot = ")) of_slots(line, *rest);
    for (const std::string_view tokens : {"n_prompt_tokens = ", "task.n_tokens = "})
      if (const auto count = number_after(line, tokens)) prompt_ = *count;
    if (line.contains("llama_api_server"))  // of LlamaEdge
      if (const auto rest = behind(" ctx_size: ")) say("n_ctx", *rest);
    if (const auto rest = behind("gguf: ")) assignment(*rest, converter_names);
    if (const auto rest = behind("- kv ")) key_of_gguf(*rest);
    // "14: FLOAT32    |        1 | qwen3.rope.freq_base = 1000000.0" of gguf-dump.
    if (const std::size_t bar = line.rfind(" | "); bar != line.npos && line.contains(" = "))
      key_of_gguf(": " + std::string(line.substr(bar + 3)));
    plain_key_of_gguf(line);
    if (line.contains("update_slots") && line.contains(" n_past="))  // of ik_llama.cpp
      if (const auto rest = behind(" n_ctx=")) say("n_ctx", *rest);
    if (const auto rest = behind("Unknown RoPE type: "))
      remark({.code = "unknown_rope_type",
              .found = printable(*rest, 60),
              .message = "the converter knows no such scaling and writes the model without it",
              .cure = "convert with a newer converter, and compare: posenc diff config.json FILE"});
    before_.push_back(in_small_letters(line));
    if (before_.size() > lines_of_context) before_.erase(before_.begin());
    if (in_small_letters(line).contains("too many indices")) {
      too_many_indices();
    } else if (tells_sizes(line)) {
      std::string context = nearby_;
      for (const std::string& one : before_) context += one + "\n";
      if (auto sizes = sizes_that_differ(line, context)) remark(*std::move(sizes));
    } else if (auto table = checkpoint_table(line)) {
      remark(*std::move(table));
    } else if (auto mask = mask_told(line, before_, behind_)) {
      remark(*std::move(mask));
    } else if (auto cut = cut_told(line, before_, behind_)) {
      remark(*std::move(cut));
    } else if (ollama_.notice(line); is_source_of_an_error(line)) {
      // The line below it has the words with their values.
    } else if (line.contains("device-side assert triggered")) {
      assert_beside_positions();
    } else if (auto message = message_of(line)) {
      remark(in_its_programs_words(*std::move(message), line));
    }
    of_one_program(line);
    scaling_without_code(line);
    null_dictionary(line);
    dictionary_in_a_cache(line);
    ollama_.read(line, line_, log_);
    suspicious(line);
    consecutive(line);
    vllm(line);
    hugging_face(line);
  }

  // An index beyond its table on the GPU, where the traceback stands in code about position.
  void assert_beside_positions() {
    const auto is_about = [](const std::string& one) {
      for (const std::string_view word :
           {"position_embed", "embed_positions", "pos_embed", "wpe(", "apply_rotary", "sincos",
            "cos_cached", "cos_sin", "rotary_emb(", "sin[:", "cos["})
        if (one.contains(word)) return true;
      return false;
    };
    if (log_.remark_of("table_end") || std::ranges::none_of(before_, is_about)) return;
    remark({.code = "table_end",
            .severity = Severity::warning,
            .message = "an index is beyond its tensor on the GPU, and the traceback stands where "
                       "positions are looked up: the text is longer than the table of positions, "
                       "or of cos and sin",
            .cure = "texts up to max_position_embeddings (2048 in many older models), prompt and "
                    "answer together: posenc explain FILE says it; CUDA_LAUNCH_BLOCKING=1 makes "
                    "the traceback exact, and a token beyond the vocabulary looks the same"});
  }

  // llama.cpp shares the context among its sequences, where they have not one cache together.
  void of_sequences() {
    const LogSaid *count = log_.find("slots"), *all = log_.find("n_ctx_all"),
                  *each = log_.find("n_ctx");
    if (!count || !all || !each || count->number < 2 || each->number < 1) return;
    // One cache for all of them: any may have all of it, and a slot is smaller by the cap alone.
    const LogSaid *unified = log_.find("unified"), *whole = log_.find("n_ctx_each");
    if ((unified && unified->text == "true") || (whole && whole->number >= all->number)) return;
    if (each->number >= all->number || each->number * count->number > 0x1p50) return;
    constexpr double shortest_text = 1024, most_slots = 16;
    const bool much = each->number < shortest_text || count->number > most_slots;
    log_.remark({.code = "slots",
                 .severity = much ? Severity::warning : Severity::note,
                 .expected = told(all->number),
                 .found = told(each->number),
                 .message = "the context is shared among " + told(count->number) +
                            " sequences (n_seq_max), each of which has " + told(each->number) +
                            " tokens: a longer text is refused, or cut",
                 .cure = "llama-server: --kv-unified, or -np 1; llama-cpp-python: kv_unified=True, "
                         "which versions after 0.3.23 set for embeddings"},
                each->line);
  }

  // A refusal without numbers, behind the lines of the slot that have them.
  void numbers_of_the_slot() {
    Finding* const at = log_.remark_of("request_too_long");
    const LogSaid* slot = log_.find("n_ctx");
    if (!at || !at->found.empty() || !slot || prompt_ <= slot->number || prompt_ > 0x1p50) return;
    at->expected = told(slot->number);
    at->found = told(prompt_);
  }

  // A number of a message may stand on the next line, where a terminal or a forum broke it.
  Finding with_next_lines(Finding message, std::string_view line) const {
    if (!message.found.empty()) return message;
    constexpr std::size_t near = 240;
    std::string joined(line.substr(0, longest_value));
    joined += ' ';
    bool blank = false;  // of several one stays
    for (const char c : plain(behind_.substr(0, near))) {
      const bool is_blank = c == '\n' || c == '\r' || c == ' ';
      if (!(is_blank && blank)) joined += is_blank ? ' ' : c;
      blank = is_blank;
    }
    auto whole = message_of(joined);
    return whole && whole->code == message.code && !whole->found.empty() ? *std::move(whole)
                                                                         : message;
  }

  bool stands_before(std::string_view word) const {
    return std::ranges::any_of(before_, [&](const std::string& one) { return one.contains(word); });
  }

  Finding in_its_programs_words(Finding message, std::string_view line) const {
    return in_words_of_tensorrt_llm(
        ollama_.in_its_words(with_next_lines(std::move(message), line)));
  }

  // text-generation-webui's own length, which is below the model's where nobody says one.
  void truncation_of_webui(std::string_view line) {
    constexpr double own = 8192;
    const auto length = number_after(line, "TRUNCATION LENGTH: ");
    const LogSaid* trained = log_.find("context");
    if (!length || *length != own || (trained && trained->number <= own)) return;
    remark({.code = "context_defaulted",
            .severity = trained ? Severity::warning : Severity::note,
            .found = "8,192 tokens",
            .message = "text-generation-webui loads a model with ctx-size 8,192 where nobody says "
                       "it, and cuts prompts there, whatever the model was made for",
            .cure = "--ctx-size LENGTH (0: the file's own), and Truncate the prompt up to this "
                    "length as high"});
  }

  void of_one_program(std::string_view line) {
    truncation_of_webui(line);
    if (auto other = told_by_neighbours(line, nearby_)) {
      std::erase_if(log_.remarks, [&](const Finding& one) {
        return one.line == line_ && one.code == "answer_shortened";
      });
      remark(*std::move(other));
    }
    view_of_heads(line);
    numbers_of_turbomind(line);
    constexpr std::string_view loaded = "\"loaded_context_length\":";  // of LM Studio
    if (const std::size_t at = line.find(loaded); at != line.npos)
      say("loaded", trimmed(line.substr(at + loaded.size())));
  }

  // transformers' words, of an enumeration of TensorRT-LLM's own.
  Finding in_words_of_tensorrt_llm(Finding message) const {
    const bool is_its = message.message.contains("looks 'default' up") &&
                        (stands_before("rotaryscalingtype") || stands_before("tensorrt_llm"));
    if (!is_its) return message;
    message.code = "engine_too_old";
    message.message =
        "TensorRT-LLM 0.17 and older have no scaling named default, to which transformers renames "
        "mrope (Qwen2-VL's) while it reads the file: the file is right";
    message.cure =
        "convert with TensorRT-LLM 0.18.2 or later, or write type mrope into rope_scaling where "
        "the converter reads it";
    return message;
  }

  // "RuntimeError: yaml-cpp: error at line 13, column 30: bad conversion"
  void numbers_of_turbomind(std::string_view line) {
    if (!line.contains("yaml-cpp: error") || !line.contains("bad conversion") ||
        !nearby_.contains("turbomind"))
      return;
    remark({.code = "flag_refused",
            .message = "TurboMind cannot read a number in the settings that LMDeploy writes for "
                       "it, and ends: reports have it of rope_scaling_factor (lmdeploy#3544), "
                       "which is dynamic NTK and not YaRN besides",
            .cure = "drop --rope-scaling-factor (0 is what it starts with); what the model's card "
                    "publishes goes into rope_scaling of the config.json, or --hf-overrides; else "
                    "update LMDeploy"});
  }

  // A table of scalings that lacks the file's: "KeyError: 'llama3'", "Unknown RoPE type yarn".
  void scaling_without_code(std::string_view line) {
    constexpr std::string_view types[] = {"llama3", "longrope", "yarn",   "proportional",
                                          "su",     "dynamic",  "linear", "mrope"};
    const std::string text = in_small_letters(line);
    const auto is_told = [&](std::string_view type) {
      if (text.contains("keyerror: '" + std::string(type) + "'")) return true;
      const bool of_rope = text.contains("rope") || text.contains("rotary");
      const bool refuses = text.contains("unknown") || text.contains("unsupported") ||
                           text.contains("not supported") || text.contains("not implemented") ||
                           text.contains("unrecognized") || text.contains("invalid");
      const std::size_t at = text.find(type);
      const auto is_of_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      };
      return of_rope && refuses && at != text.npos && (at == 0 || !is_of_word(text[at - 1])) &&
             (at + type.size() == text.size() || !is_of_word(text[at + type.size()]));
    };
    const auto* const type = std::ranges::find_if(types, is_told);
    if (type == std::end(types) || text.contains("unrecognized keys") ||
        text.contains("unrecognized argument"))
      return;
    for (const Finding& one : log_.remarks)
      if (one.line == line_) return;
    remark({.code = "engine_too_old",
            .found = std::string(*type),
            .message = "the program looks the scaling " + std::string(*type) +
                       " up among those that it has, and has none of this name: it is older than "
                       "the file, which is right, or has no code for this scaling at all",
            .cure = "update the program and transformers; another type in its place, or none, is "
                    "another rotation"});
  }

  // "shape '[1, 1, 32, 64]' is invalid for input of size 4096": the model knows its heads.
  void view_of_heads(std::string_view line) {
    constexpr std::string_view shape = "shape '[", size = "is invalid for input of size ";
    const std::size_t at = line.find(shape);
    const auto numbers = number_after(line, size);
    if (at == line.npos || !numbers) return;
    log_.said["view"] = {*numbers, printable(line.substr(at, 100)), line_};
    ++log_.known;
  }

  // Code for transformers 5, where every model has the dictionary, on a file or a version in which
  // none means no scaling.
  void null_dictionary(std::string_view line) {
    if (!line.contains("'NoneType'")) return;
    const bool reads_it = line.contains("not iterable") || line.contains("not subscriptable") ||
                          line.contains("has no attribute 'get'") ||
                          line.contains("has no attribute 'items'") ||
                          line.contains("not a mapping");
    const bool of_rope = std::ranges::any_of(before_, [](const std::string& one) {
      return one.contains("rope_scaling") || one.contains("rope_parameters");
    });
    if (!reads_it || !of_rope) return;
    remark({.code = "transformers_mismatch",
            .message = "rope_scaling or rope_parameters is null, as in files and versions of "
                       "transformers before 5 where nothing is scaled, and this code reads it as "
                       "the dictionary that 5 makes for every model",
            .cure = "pip install -U transformers (5.0 or later), or an update of the program; the "
                    "file is right, and a scaling written into it would change the model"});
  }

  // get_rope(…, rope_scaling) behind lru_cache, whose arguments must be hashable: a dictionary is
  // none.
  void dictionary_in_a_cache(std::string_view line) {
    if (!line.contains("unhashable type: 'dict'")) return;
    const auto of_rope = [](std::string_view text) {
      return text.contains("get_rope") || text.contains("rope_scaling") ||
             text.contains("rope_parameters") || text.contains("rotary_emb");
    };
    if (!of_rope(nearby_) && std::ranges::none_of(before_, of_rope)) return;
    remark({.code = "transformers_mismatch",
            .message = std::string(dictionary_of_five) +
                       "; this code keeps rotations by their arguments (lru_cache), of which a "
                       "dictionary can be none",
            .cure = std::string(update_the_program) +
                    ", unless it has a scaling, which this code does not take"});
  }

  // raise ValueError(f"Unknown … {name}"), as a traceback quotes it.
  static bool is_source_of_an_error(std::string_view line) {
    const std::string_view text = trimmed(line);
    return text.starts_with("raise ") && text.contains("(f\"") && text.contains('{');
  }

  // "initializing, n_slots = 2, n_ctx_slot = 172544, kv_unified = 'false'"
  void of_slots(std::string_view line, std::string_view rest) {
    say("n_ctx", rest);
    const auto slots = number_after(line, "n_slots = "), each = number_after(line, "n_ctx_slot = ");
    constexpr double most = 1e12;
    if (!slots || !each || *slots <= 1 || *slots > 1024 || *each <= 0 || *each > most ||
        !line.contains("kv_unified = 'false'"))
      return;
    const auto one = static_cast<std::int64_t>(*each), count = static_cast<std::int64_t>(*slots);
    remark({.code = "slots",
            .severity = Severity::note,
            .expected = grouped(one * count),
            .found = grouped(one),
            .message = "the context is shared out among " + std::to_string(count) +
                       " slots: a text has one slot's " + grouped(one) + " of " +
                       grouped(one * count),
            .cure = "--kv-unified, or one slot (-np 1; Jan: Parallel Sequences 1, or Unified KV "
                    "Cache)",
            .line = line_});
  }

  // An error that speaks of position and that nobody here knows is better said than passed over.
  void suspicious(std::string_view line) {
    const bool is_plain = suspect_.line && suspect_.code == "line_unknown";
    if (suspect_.line && !is_plain) return;
    if (auto compared = compared_lengths(line)) {
      suspect_ = *std::move(compared);
      suspect_.line = line_;
      return;
    }
    // "assert model.config.rope_theta == 10000" is code, and no assertion that failed.
    if (is_plain || (trimmed(line).starts_with("assert ") && line.contains("==")) ||
        trimmed(line).starts_with("assert model."))
      return;
    std::string text = in_small_letters(line);
    // Jan calls all that its engine prints an error.
    if (const std::size_t at = text.find("]::error:"); at != text.npos) text.erase(0, at + 9);
    const auto has = [&](std::initializer_list<std::string_view> words) {
      return std::ranges::any_of(words, [&](std::string_view word) { return text.contains(word); });
    };
    if (!has({"rope", "rotary", "position_id", "position id", "positional", "pos_embed",
              "max_position", "context length", "seq_len", "sequence length", "n_ctx", "cos_sin",
              "freqs_cis", "inv_freq"}))
      return;
    const bool is_source = text.contains("position_ids") && line.starts_with("    ");
    if (!is_source && !has({"error", "assert", "mismatch", "exceed", "invalid", "must ",
                            "not support", "unsupported", "unknown", "unexpected", "missing",
                            "warn", "fail", "cannot", "longer", "larger"}))
      return;
    suspect_ = {.code = "line_unknown",
                .severity = Severity::warning,
                .found = printable(trimmed(line), 100),
                .message = "this line speaks of position, and posenc does not know it",
                .cure = "give the model's config.json and the line that started it as well",
                .line = line_};
  }

  // A terminal broke a line that is known in two.
  void wrapped(std::string_view text) {
    constexpr std::size_t longest = 1 << 14;
    // Numbers alone say nothing of the error beside them.
    if (log_.known > 0 && log_.remarks.empty() && suspect_.line &&
        (suspect_.code != "line_unknown" || in_small_letters(suspect_.found).contains("error"))) {
      line_ = *suspect_.line;
      remark(suspect_);
    }
    if (log_.known > 0 || text.size() > longest) return;
    std::string joined = plain(text);
    std::ranges::replace(joined, '\n', ' ');
    std::erase(joined, '\r');
    line_ = 1;
    if (auto message = message_of(joined)) return remark(*std::move(message));
    if (!suspect_.line) return;
    line_ = *suspect_.line;
    remark(suspect_);
  }

  // The lines below llama.cpp's "inconsistent sequence positions" have the numbers: the last cached
  // position X, and the first of the new tokens, Y.
  void consecutive(std::string_view line) {
    const auto last = number_after(line, " is X = "),
               next = number_after(line, "have a starting position of Y = ");
    for (const std::string_view words :
         {"ctx_dft", "speculative batch", "draft: llama_decode returned", "drafter decode failed"})
      of_draft_ |= line.contains(words);
    Finding* const at = log_.remark_of("positions_not_consecutive");
    if (!at) return;
    constexpr double most = 0x1p50;
    if (last) at->expected = grouped(std::llround(std::min(*last + 1, most)));
    if (next) at->found = grouped(std::llround(std::min(*next, most)));
  }

  // A draft's context that has gone on without its target, or has fallen behind it.
  void positions_of_draft(Finding& finding, std::string_view text) const {
    const auto next_cached = number_after(finding.expected, ""),
               next_token = number_after(finding.found, "");
    const bool ahead = next_cached && next_token && *next_cached > *next_token + 1;
    finding.message =
        std::string(positions_of_a_draft) +
        (ahead ? "its cache is ahead of the tokens that it gets (guesses that were not taken were "
                 "left in it, or slots share it)"
               : "it did not get the prompt's tokens that its model has seen (a prompt from the "
                 "cache, pictures, or a draft of another kind)") +
        ", so its guesses would stand at wrong places, and it drafts no more";
    const LogSaid* count = log_.find("slots");
    const double slots = number_after(text, "spec cycle (").value_or(count ? count->number : 1);
    finding.cure = std::string(
                       "update llama.cpp; until then start this model without the draft (leave out "
                       "-md, or --spec-type where MTP's layers draft)") +
                   (slots > 1 ? ", or with one slot (-np 1)" : "") +
                   ", and compare the answers: the target's own are right";
  }

  // Pictures that are decoded in several batches, as the log counts them, and the tokens of one:
  // "decoding image batch 2/3, n_tokens_batch = 512".
  struct Batches {
    double count = 0, tokens = 0;
  };
  static Batches in_batches(std::string_view text) {
    constexpr std::string_view marker = "decoding image batch ";
    Batches out;
    for (std::size_t at = text.find(marker); at != text.npos; at = text.find(marker, at + 1)) {
      const std::string_view line = text.substr(at, text.substr(at).find('\n'));
      const auto count = number_after(line, "/");
      if (!count || *count <= out.count || *count > 0x1p20) continue;
      out.count = *count;
      out.tokens = number_after(line, "n_tokens_batch = ").value_or(0);
    }
    return out;
  }

  // Tokens of the prompt before, as llama-server says it.
  static bool reuses_a_cache(std::string_view text) {
    if (text.contains("reusing chunk") || text.contains("restored context checkpoint")) return true;
    constexpr std::string_view cached = "cached n_tokens = ";
    for (std::size_t at = text.find(cached); at != text.npos; at = text.find(cached, at + 1))
      if (number_after(text.substr(at), cached).value_or(0) > 0) return true;
    return false;
  }

  // Which of the causes it is, where other lines tell.
  void cause_of_positions(const Batches& batches, std::string_view text) {
    Finding* const at = log_.remark_of("positions_not_consecutive");
    if (!at) return;
    if (of_draft_) return positions_of_draft(*at, text);
    constexpr std::string_view no_reuse = "--cache-reuse 0 --no-cache-prompt, -np 1";
    // llama.cpp asks for Y = X + 1 where the model has one position a token.
    const bool one_axis = text.contains("remain consecutive") && !text.contains("M-RoPE");
    if (batches.count > 1) {
      const double tokens = std::min(batches.count * batches.tokens, 0x1p40);
      const std::string most = tokens > 0 ? std::to_string(std::llround(tokens)) : "LENGTH";
      at->message = "llama.cpp stops within a picture, which " + told(batches.count) +
                    " batches share: under M-RoPE its tokens have one position in time, so that "
                    "the second batch begins where the first did, and builds before November 2025 "
                    "take that for a fault";
      at->cure = "update llama.cpp (LM Studio: its runtime); until then -b " + most + " -ub " +
                 most + ", as many as the picture's tokens, or a smaller picture";
    } else if (reuses_a_cache(text)) {
      at->message = std::string(not_consecutive) +
                    "The server reused a cache that it could not cut back (recurrent layers, a "
                    "sliding window" +
                    (one_axis ? ")"
                              : ", or pictures under M-RoPE, which take fewer positions than "
                                "tokens)");
      at->cure = "update it; until then start it without reuse: " + std::string(no_reuse);
    } else if (one_axis) {
      at->message = std::string(not_consecutive) + std::string(of_two_causes);
      at->cure = "update it; until then no reuse: " + std::string(no_reuse) + "; or no draft";
    } else {
      at->message = std::string(not_consecutive) + std::string(of_three_causes);
      at->cure =
          "update it; until then -b and -ub of at least a picture's tokens, no draft, or no "
          "reuse: " +
          std::string(no_reuse);
    }
  }

  // "  10:   llama.rope.freq_base f32 = 500000.000000"
  void key_of_gguf(std::string_view text) {
    const std::size_t colon = text.find(':'), equals = text.find(" = ");
    if (colon == text.npos || equals == text.npos || colon > equals) return;
    const std::string_view name = trimmed(text.substr(colon + 1, equals - colon - 1));
    std::string_view value = trimmed(text.substr(equals + 3));
    while (value.size() > 1 && (value.front() == '\'' || value.front() == '"'))
      value = value.substr(1, value.size() - (value.back() == value.front() ? 2 : 1));
    log_.say_by_key(name.substr(0, name.find(' ')), value, line_);
  }

  // "gemma3.context_length    131072", as `ollama show -v`, its library, tables and people write it.
  void plain_key_of_gguf(std::string_view line) {
    constexpr std::string_view between = " \t:=\"'|`";
    const std::size_t begin = line.find_first_not_of(" \t|`-*");
    const std::string_view text = trimmed(line.substr(std::min(begin, line.size())));
    const std::size_t end = text.find_first_of(between);
    constexpr std::size_t longest_key = 80;
    if (end == text.npos || end == 0 || end > longest_key) return;
    const std::string_view key = text.substr(0, end);
    const std::size_t value = text.find_first_not_of(between, end);
    const bool of_type = key.ends_with(".rope.scaling.type");
    if (value == text.npos || !(of_type || is_digit(text[value]))) return;
    // Settings of programs have keys that end alike.
    if (!is_architecture(key.substr(0, key.find('.')))) return;
    std::string digits(text.substr(value));
    digits.resize(std::min(digits.find_first_of(" \t\"'|`"), digits.size()));
    std::erase(digits, ',');
    log_.say_by_key(key, digits, line_);
    if (key.ends_with(".rope.freq_base")) log_.said["base_key"] = {0, printable(key), line_};
    if (key.contains("freq_base_swa")) log_.said["sliding_base_key"] = {0, printable(key), line_};
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

  // An index by axis into positions that have none: of which, the lines before tell.
  void too_many_indices() {
    std::string context;
    for (const std::string& one : before_) context += one + "\n";
    if (context.contains("_position_ids["))
      remark({.code = "positions_stale",
              .message =
                  "positions kept from the request before have two axes, of text, where three "
                  "rows are read: the server reuses them",
              .cure = "update it (mlx-vlm and what is built on it); until then set "
                      "model._position_ids to None before each request"});
    else if (context.contains("attention_mask[") && context.contains("get_rope_index"))
      remark({.code = "mask_axes",
              .message = "get_rope_index takes the padding mask [batch, tokens], and got one of "
                         "more axes (causal, [batch, 1, tokens, keys]): a row of it is no list of "
                         "tokens",
              .cure = "hand over the mask of the tokenizer (2-D), or None where nothing is padded; "
                      "update the trainer's bridge, whose newest code does"});
    else if (context.contains("rotary") || context.contains("rope") || context.contains("position"))
      remark({.code = "position_rows",
              .message = "M-RoPE reads position_ids of three rows [3, batch, seq], and got [batch, "
                         "seq]: the caller made positions of text",
              .cure = "make them by the model's get_rope_index, or update the trainer's bridge"});
  }

  // What vLLM was handed: a scaling that is no object was taken apart on its way.
  void override_of(std::string_view text) {
    const auto repr = json_of_repr(text);
    if (!repr) return;
    const auto json = parse_json(*repr, "hf_overrides");
    if (!json) return;
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const Json* scaling = json->find(key);
      if (!scaling) continue;
      if (scaling->get<Json::Object>()) {
        log_.said["hf_overrides"] = {0, *repr, line_};
        ++log_.known;
        return;
      }
      remark({.code = "override_broken",
              .found = printable(scaling->text(), 60),
              .message = std::string(key) +
                         " reached vLLM as a list or a text, not as an object: the JSON was split "
                         "at its commas, or quoted twice, on its way through another program",
              .cure = "write the scaling into the model's config.json, where nobody splits it"});
    }
  }

  void vllm(std::string_view line) {
    for (const char* name : {"rope_scaling", "rope_parameters", "hf_overrides"}) dict(line, name);
    constexpr std::string_view overriding = "Overriding HF config with ";
    if (const std::size_t at = line.find(overriding); at != line.npos)
      override_of(line.substr(at + overriding.size()));
    // llama.cpp's convert.py, whose GGUF then has no base: the engine takes 10000.
    constexpr std::string_view of_converter = "f_rope_freq_base=";
    if (const std::size_t at = line.find(of_converter); at != line.npos) {
      const std::string_view value = line.substr(at + of_converter.size());
      say("base", value.starts_with("None") ? "10000" : value);
    }
    if (line.contains("rope_theta=") && line.contains("rope_scaling="))
      if (number_after(line, "rope_theta="))
        say("base", line.substr(line.find("rope_theta=") + 11));
    // llama-server's /props, and what a child tells the router that started it.
    if (const std::size_t at = line.find("\"n_ctx\":");
        at != line.npos &&
        (line.contains("default_generation_settings") || line.contains("cmd_child_to_router:info")))
      say("n_ctx", line.substr(at + 8));
    for (const char* name :
         {"max_seq_len=", "max_model_len=", "'max_model_len': ", "\"max_model_len\":"})
      if (number_after(line, name))
        say("n_ctx", line.substr(line.find(name) + std::string_view(name).size()));
    // "Initializing a V1 LLM engine (v0.9.1)", "vLLM API server version 0.9.1"
    for (const std::string_view before : {"LLM engine (v", "vLLM API server version "})
      if (const std::size_t at = line.find(before); at != line.npos) {
        const std::string_view rest = line.substr(at + before.size());
        log_.said["vllm_version"] = {
            0, std::string(rest.substr(0, rest.find_first_not_of("0123456789."))), line_};
      }
    // "build: 7380 (36c258ee9) with AppleClang", "version: 7380 (36c258ee9)"
    for (const char* const before : {"build: ", "version: "})
      if (const std::size_t at = line.find(before); at != line.npos) {
        const std::string_view build = line.substr(at + std::string_view(before).size());
        const std::size_t digits = build.find_first_not_of("0123456789");
        if (digits >= 4 && digits <= 6 && build.substr(digits).starts_with(" ("))
          log_.said["llama_build"] = {0, "b" + std::string(build.substr(0, digits)), line_};
      }
    constexpr std::string_view length = "Using max model len ";
    if (const std::size_t at = line.find(length); at != line.npos) {
      // Said of the model first, and then of its draft, before that is cut to the model's.
      if (!log_.find("n_ctx") || !resolved_twice_)
        say("n_ctx", line.substr(at + length.size()));
      else
        remark({.code = "draft_context",
                .severity = Severity::note,
                .found = told(number_after(line, length).value_or(0)),
                .message =
                    "this line is of the draft (MTP's layers, or a model of its own), before "
                    "vLLM cuts it to the length that the target serves: no fault"});
    }
    if (line.contains("Resolved architecture: ")) resolved_twice_ = log_.find("n_ctx") != nullptr;
    // RotaryEmbedding(head_size=128, rotary_dim=128, max_position_embeddings=…, base=500000,
    // is_neox_style=True)
    if (line.contains("head_size=") && line.contains("rotary_dim=") && line.contains("base=")) {
      say("rotary_dim", line.substr(line.find("rotary_dim=") + 11));
      say("base", line.substr(line.find("base=") + 5));
      if (const std::size_t at = line.find("is_neox_style="); at != line.npos)
        say("halves", line.substr(at + 14).starts_with("True") ? "1" : "0");
    }
    if (line.contains("is greater than the derived max_model_len")) longer_than_derived(line);
  }

  // vLLM stops at it, but where a variable lets it start all the same.
  void longer_than_derived(std::string_view line) {
    const auto told_behind = [&](std::string_view before) {
      const auto number = number_after(line, before);
      return number ? told(*number) : std::string();
    };
    const auto in_digits = [&](std::string_view before) {
      const auto number = number_after(line, before);
      return number ? std::to_string(std::llround(std::min(*number, 0x1p50))) : "LENGTH";
    };
    // Qwen 1 and others have a key of their own: "derived max_model_len (seq_length=2048".
    constexpr std::string_view derived = "derived max_model_len (";
    const std::size_t at = std::min(line.find(derived), line.size());
    const std::string_view key = line.substr(at, std::min(line.find('=', at), line.size()) - at);
    const std::string of_file = std::string(key) + "=";  // "(None=8192" where it finds no key
    Finding out{.code = "context_refused",
                .expected = key.ends_with("None") ? "" : told_behind(of_file),
                .found = told_behind("max_model_len ("),
                .message = "vLLM was asked for more tokens than it derives from the file",
                .cure = "--max-model-len " + in_digits(of_file) +
                        " at most; for more posenc extend MODEL --to " +
                        in_digits("max_model_len (") + " --engine vllm writes the scaling"};
    if (key.ends_with("(sliding_window")) {
      out.message =
          "vLLM serves the model up to its window: it was told --disable-sliding-window, or is "
          "of a time when layers with a window (Gemma 2), or a window beside cached prefixes, "
          "could not be run";
      out.cure = "a newer vLLM without --disable-sliding-window; or --max-model-len " +
                 in_digits(of_file) + " at most. No scaling is wanted";
    }
    const auto of_tokenizer = number_after(line, "model_max_length="),
               of_model = number_after(line, "max_position_embeddings=");
    if (of_tokenizer && (!of_model || *of_tokenizer < *of_model)) {
      out.expected = told_behind("model_max_length=");
      out.message +=
          ": the shortest that it finds is model_max_length of tokenizer_config.json, which is no "
          "limit of the model";
      out.cure =
          "raise model_max_length in tokenizer_config.json, as far as max_position_embeddings of "
          "the config.json (posenc explain MODEL) reaches";
    }
    if (line.contains("WARN")) {
      out.code = "beyond_context";
      out.severity = Severity::warning;
      out.message +=
          ", and started all the same (VLLM_ALLOW_LONG_MAX_MODEL_LEN=1): positions behind it are "
          "beyond its table of cos and sin, which is an assertion on the GPU or other memory";
    }
    remark(std::move(out));
  }

  // Keys that transformers warns of, and that its classes read all the same.
  void unrecognized_keys(std::string_view keys) {
    constexpr std::string_view read[] = {
        "mrope_section", "mrope_interleaved",   "truncate", "type", "finetuned",
        "rope_theta",    "llama_4_scaling_beta"};
    constexpr std::string_view layer_types[] = {"full_attention", "sliding_attention",
                                                "chunked_attention", "linear_attention"};
    bool all_read = !keys.empty(), all_types = keys.contains('\'');
    for (std::size_t at = keys.find('\''); at != keys.npos;) {
      const std::size_t end = keys.find('\'', at + 1);
      if (end == keys.npos) break;
      const std::string_view key = keys.substr(at + 1, end - at - 1);
      all_read &= std::ranges::find(read, key) != std::end(read);
      all_types &= std::ranges::find(layer_types, key) != std::end(layer_types);
      at = keys.find('\'', end + 1);
    }
    if (all_types)
      return remark(
          {.code = "unknown_key",
           .severity = Severity::note,
           .found = printable(trimmed(keys), 100),
           .message = "these are types of layers, by which rope_parameters is parted: transformers "
                      "up to 5.16 takes it as one for all where layer_types lacks a kind, as in a "
                      "tiny model of two layers (transformers#48435); the layers that are there "
                      "rotate as they should",
           .cure =
               "pass over it, give the tiny model layers of each kind, or a newer transformers"});
    remark({.code = "unknown_key",
            .severity = all_read ? Severity::note : Severity::warning,
            .found = printable(trimmed(keys), 100),
            .message = all_read
                           ? "the check of transformers alone does not know these keys, and the "
                             "model's class reads them (mrope_section of pictures, truncate of "
                             "YaRN), or they do nothing: the line may be passed over"
                           : "transformers does not read these keys: what they should do does not "
                             "happen there, and other engines may read them",
            .cure = all_read ? ""
                             : "posenc diff MODEL --engines all tells which engine reads "
                               "them"});
  }

  // Trainers compare their own arguments with the model's configuration (slime, miles).
  void arguments_compared(std::string_view line) {
    constexpr std::pair<std::string_view, std::string_view> compared[] = {
        {"rope_theta in hf config ", "rope_theta"},
        {"max_position_embeddings in hf config ", "context"}};
    for (const auto& [marker, code] : compared) {
      const auto file = number_after(line, marker);
      const std::size_t at = line.find("is not equal to ");
      if (!file || at == line.npos) continue;
      std::string_view rest = line.substr(at + 16);
      const std::string_view name = rest.substr(0, rest.find(' '));
      const auto given = number_after(rest, name);
      if (!given || name.empty()) continue;
      std::string flag = "--" + std::string(name);
      std::ranges::replace(flag, '_', '-');
      // What a class has where its file says the base in rope_parameters, which is not looked at.
      constexpr double class_default = 10000;
      const bool unread = code == "rope_theta" && *file == class_default;
      remark({.code = std::string(code),
              .expected = number_text(*file),
              .found = number_text(*given),
              .message = "the trainer's argument " + flag +
                         (unread ? " and what it read of the model's configuration differ: 10000 "
                                   "is also what a class has where the file says its base in "
                                   "rope_parameters (transformers 5) and the trainer looks for "
                                   "rope_theta beside it"
                                 : " is not what the model's configuration says: with it the model "
                                   "would rotate as it was not trained"),
              .cure = unread ? "keep " + flag + " " + number_text(*given) +
                                   " where rope_parameters of the config.json says so, and update "
                                   "the trainer, or write \"rope_theta\": " +
                                   number_text(*given) + " at the top of the file; else " + flag +
                                   " 10000"
                             : flag + " " + number_text(*file) + " in the model's arguments"});
    }
  }

  // A program that stops at a flag of position that it does not have.
  void refused_flag(std::string_view line) {
    for (const std::string_view marker :
         {"unrecognized arguments: ", "invalid argument: ", "unexpected argument '",
          "unknown argument: ", "No such option: ", "unknown flag: ", "unknown option: ",
          "unexpected keyword argument '", "unrecognized option '"}) {
      const std::size_t at = line.find(marker);
      if (at == line.npos) continue;
      const std::string_view rest = line.substr(at + marker.size());
      const std::string_view flag = rest.substr(0, rest.find_first_of(" =':\""));
      const std::string word = in_small_letters(flag);
      const auto has = [&](std::string_view part) { return word.contains(part); };
      if (!has("rope") && !has("yarn") && !has("rotary")) return;
      const bool of_vllm = line.contains("vllm") || line.contains("api_server") ||
                           line.contains("AsyncEngineArgs") || line.contains("EngineArgs");
      const bool is_old = of_vllm && (has("rope-scaling") || has("rope_scaling") ||
                                      has("rope-theta") || has("rope_theta"));
      std::string dict;
      if (const std::size_t brace = rest.find('{'); brace != rest.npos)
        if (const auto json = json_of_repr(rest.substr(brace)))
          if (parse_json(*json, "flag")) dict = json->substr(1);
      if (is_old)
        remark({.code = "flag_removed",
                .found = printable(flag, 60),
                .message = "vLLM has no " + printable(flag, 60) +
                           " since 0.11.1: what it set belongs into the configuration",
                .cure = "--hf-overrides '{\"rope_parameters\":{\"rope_theta\":" +
                        std::string(base_of_the_file) +
                        (dict.empty() ? ",…}}'" : "," + printable(dict, 200) + "}'") +
                        ", within \"text_config\" for models that have one"});
      else
        remark({.code = "flag_refused",
                .found = printable(flag, 60),
                .message = "the program has no such flag or argument, and stops",
                .cure = word.contains("rotary_scaling") || word.contains("rotary_base")
                            ? "TensorRT-LLM's converter reads rope_scaling and rope_theta of the "
                              "model's config.json: write them there"
                            : "posenc translate MODEL --to ENGINE writes what an engine takes"});
      return;
    }
  }

  // A tokenizer's own limit, which is none of positions but where a learned table is so long.
  void tokenizer_limit(std::string_view line) {
    constexpr std::string_view of_tokenizer = "maximum sequence length for this model (";
    const auto length = number_after(line, of_tokenizer);
    if (!length) return;
    const auto limit = number_after(line, " > ");
    log_.said["text"] = {*length, {}, line_};
    constexpr double rows_of_bert = 512, rows_of_gpt2 = 1024;
    const bool of_table = limit && (*limit == rows_of_bert || *limit == rows_of_gpt2);
    Finding mine{.code = "tokenizer_limit",
                 .severity = of_table ? Severity::warning : Severity::note,
                 .expected = limit ? told(*limit) : "",
                 .found = told(*length),
                 .message =
                     "the tokenizer's own limit (model_max_length of tokenizer_config.json), which "
                     "changes no position: what counts is max_position_embeddings of the model",
                 .cure = "posenc doctor MODEL LOG says whether the text is within it"};
    if (constexpr double rows_of_clip = 77; limit && *limit == rows_of_clip) {
      mine.message =
          "77 tokens are CLIP's, and the line comes of its tokenizer alone: ComfyUI, Forge and "
          "A1111 encode longer prompts in pieces of 75 and lose nothing; diffusers cuts them "
          "there, and other encoders (T5 of FLUX and SD3) read on";
      mine.cure = "in diffusers fewer words, or compel or sd_embed, which encode by pieces";
    }
    if (of_table) {
      mine.message = "so long are the learned tables of most " +
                     std::string(*limit == rows_of_bert ? "encoders (BERT, RoBERTa, embeddings)"
                                                        : "models before RoPE (GPT-2, BART)") +
                     ": what is longer is cut, or ends with an index out of range; a model that "
                     "rotates, or T5, reads on";
      mine.cure = "shorter pieces (chunks), or truncation=True, max_length=" +
                  std::to_string(std::llround(*limit)) +
                  "; or a model that reaches further: posenc doctor MODEL LOG says how far yours "
                  "does";
    }
    remark(std::move(mine));
  }

  void hugging_face(std::string_view line) {
    const std::size_t unknown = in_small_letters(line).find("unrecognized keys in `rope_");
    if (unknown != line.npos) {
      const std::size_t keys = line.find('{', unknown);
      unrecognized_keys(keys == line.npos ? std::string_view() : line.substr(keys));
    }
    arguments_compared(line);
    refused_flag(line);
    auto length = number_after(line, "exceed the model's predefined maximum length (");
    if (!length) length = number_after(line, "exceeded the model's predefined maximum length (");
    if (length)
      remark({.code = "beyond_context",
              .severity = Severity::warning,
              .found = told(*length),
              .message = "a text was longer than the model's context: angles that training has "
                         "not shown",
              .cure = "ask for less, or plan a longer context: posenc extend MODEL --to LENGTH"});
    tokenizer_limit(line);
    if (line.contains("exceeds the training context of the model")) slot_capped(line);
  }

  void slot_capped(std::string_view line) {
    // Slots that are capped meet no new angle.
    std::erase_if(log_.remarks, [](const Finding& one) { return one.code == "beyond_context"; });
    const auto slot = number_after(line, "the slot context ("),
               file = number_after(line, "of the model (");
    Finding out{.code = "context_capped",
                .severity = Severity::warning,
                .expected = slot ? told(*slot) : "",
                .found = file ? told(*file) : ""};
    const LogSaid *scale = log_.find("scale"), *type = log_.find("type");
    const LogSaid* original = log_.find("original");
    const bool uncounted = original && file && original->number == *file;
    if (slot && uncounted && scale && type && scale->number > 0 && scale->number < 1) {
      out.message = "llama-server caps a slot at n_ctx_train, and the file scales by itself (" +
                    printable(type->text, 20) + ", times " + number_text(1 / scale->number) +
                    "), which n_ctx_train does not count";
      out.cure = "--override-kv ARCH.context_length=int:" +
                 std::to_string(std::llround(std::min(*slot, 0x1p50))) +
                 " alone (ARCH as general.architecture says), and no other scaling";
      return remark(std::move(out));
    }
    out.message =
        "llama-server caps a slot at the length that the file says. Since llama.cpp#28030 "
        "(30 August 2026) YaRN by flags lifts it, before that nothing but the file's key "
        "does, and a linear scale or a base never";
    out.cure =
        "update it and write --rope-scaling yarn with --rope-scale (posenc extend MODEL --to "
        "LENGTH --engine llama.cpp), or --override-kv ARCH.context_length=int:LENGTH";
    remark(std::move(out));
  }

  static constexpr std::size_t lines_of_context = 12;
  EngineLog log_;
  std::int64_t line_ = 0;
  std::vector<std::string> before_ = {};  // the last lines, in small letters
  std::string nearby_ = {};               // all of a short text, in small letters
  double prompt_ = 0;                     // tokens of the last prompt that a slot got
  std::string_view behind_ = {};          // what the log has behind the line that is read
  Finding suspect_ = {};                  // the first error that speaks of position
  LoaderLines ollama_;
  bool of_draft_ = false;        // positions that do not follow are of a draft's context
  bool resolved_twice_ = false;  // vLLM has gone on from the model to its draft
};

}  // namespace

Expected<EngineLog> read_log(std::string_view text) { return LogReader().read(text); }

}  // namespace posenc::detail
