// Splits a command line into words and finds the engine and its flags.
#include "src/tools/command_line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "src/core/edit_distance.h"
#include "src/core/small_letters.h"
#include "src/core/try.h"
#include "src/core/words.h"
#include "src/tools/dotted.h"
#include "src/tools/programs.h"

namespace posenc::detail {
namespace {

constexpr std::size_t longest_command = std::size_t{1} << 20;
constexpr std::string_view end_of_command = "\n";
constexpr std::ptrdiff_t deepest_override = 16;
constexpr std::string_view dotted_override = "--hf-overrides.";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Words with quotes taken off; the end of a command (a line, ";", "&&", "|") is a word of its own.
class ShellWords {
 public:
  explicit ShellWords(std::string_view text) : text_(text) {}

  Expected<std::vector<std::string>> read() {
    while (at_ < text_.size()) POSENC_CHECK(step());
    finish();
    return std::move(words_);
  }

 private:
  Expected<void> step() {
    const char c = text_[at_];
    if (c == '\'' || c == '"') return quoted(c);
    ++at_;
    if (c == '\\') {
      escaped();
    } else if (is_blank(c)) {
      finish();
    } else if (c == '\n') {
      finish();
      if (!goes_on()) words_.emplace_back(end_of_command);
    } else if (c == ';' || c == '&' || c == '|') {
      finish();
      words_.emplace_back(end_of_command);
    } else if (c == '#' && !word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '$' && variable()) {
    } else {
      put(c);
    }
    return {};
  }

  // ${NAME:-WORD} is WORD where nobody sets the variable; `at_` stands behind the dollar.
  bool variable() {
    if (at_ >= text_.size() || text_[at_] != '{') return false;
    const std::size_t end = text_.find('}', at_), dash = text_.find('-', at_);
    if (end == text_.npos || dash > end || end - at_ > 256) return false;
    for (const char c : text_.substr(dash + 1, end - dash - 1))
      if (c != '"' && c != '\'') put(c);
    at_ = end + 1;
    return true;
  }

  Expected<void> quoted(char quote) {
    const std::size_t start = at_++;
    // "DeepSeek-R1's output": an apostrophe, and no quote.
    if (quote == '\'' && start > 0 && (is_letter(text_[start - 1]) || is_digit(text_[start - 1])) &&
        text_.find(quote, at_) == text_.npos) {
      put(quote);
      return {};
    }
    put();
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return {};
      }
      const bool escape = quote == '"' && c == '\\' && at_ + 1 < text_.size() &&
                          std::string_view("\"\\$`").contains(text_[at_ + 1]);
      if (quote == '"' && c == '$') {
        ++at_;
        if (!variable()) put(c);
        --at_;  // of the loop
        continue;
      }
      put(escape ? text_[++at_] : c);
    }
    return fail("command", "a quote must end", text_.substr(start, 40),
                "close it; JSON stands in single quotes");
  }

  // A backslash joins lines, those of Windows too.
  void escaped() {
    if (at_ >= text_.size()) return;
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    const char c = text_[at_++];
    if (c != '\n') put(c);
  }

  // Flags that stand in lines of their own, without a backslash before; comments among them.
  bool goes_on() const {
    std::size_t next = text_.find_first_not_of(" \t\r\n", at_);
    while (next != text_.npos && text_[next] == '#')
      next = text_.find_first_not_of(" \t\r\n", std::min(text_.find('\n', next), text_.size()));
    return next != text_.npos && text_[next] == '-';
  }

  void put() {
    if (!word_) word_.emplace();
  }
  void put(char c) {
    put();
    *word_ += c;
  }
  void finish() {
    if (word_) words_.push_back(*std::move(word_));
    word_.reset();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<std::string> word_;
  std::vector<std::string> words_;
};

struct KnownFlag {
  std::string_view owner, name, alias = {};  // whose: an engine, or a program with its own words
  bool is_switch = false;                    // stands alone, without a value
};
// arguments of llama.cpp's common/arg.cpp, of vllm/engine/arg_utils.py (--rope-scaling and
// --rope-theta up to 0.11.0), of sglang/srt/server_args.py, of Megatron-LM's
// megatron/training/arguments.py, and of LMDeploy's and TensorRT-LLM's servers.
constexpr KnownFlag known_flags[] = {
    {"llama.cpp", "--rope-scaling"},
    {"llama.cpp", "--rope-scale"},
    {"llama.cpp", "--rope-freq-base"},
    {"llama.cpp", "--rope-freq-scale"},
    {"llama.cpp", "--yarn-orig-ctx"},
    {"llama.cpp", "--yarn-ext-factor"},
    {"llama.cpp", "--yarn-attn-factor"},
    {"llama.cpp", "--yarn-beta-slow"},
    {"llama.cpp", "--yarn-beta-fast"},
    {"llama.cpp", "--ctx-size", "-c"},
    {"llama.cpp", "--override-kv"},
    {"llama.cpp", "--parallel", "-np"},
    {"llama.cpp", "--kv-unified", "-kvu", true},
    {"llama.cpp", "--grp-attn-n", "-gan"},
    {"llama.cpp", "--grp-attn-w", "-gaw"},
    {"llama.cpp", "--model-draft", "-md"},
    {"llama.cpp", "--model-draft", "-hfd"},
    {"llama.cpp", "--model-draft", "-hfrd"},
    {"llama.cpp", "--model-draft", "--hf-repo-draft"},
    {"llama.cpp", "--ctx-size-draft", "-cd"},
    {"llama.cpp", "--context-shift", "", true},
    {"llama.cpp", "--predict", "-n"},
    {"llama.cpp", "--predict", "--n-predict"},
    {"llama.cpp", "--rope-scaling", "LLAMA_ARG_ROPE_SCALING_TYPE"},  // variables
    {"llama.cpp", "--rope-scale", "LLAMA_ARG_ROPE_SCALE"},
    {"llama.cpp", "--rope-freq-base", "LLAMA_ARG_ROPE_FREQ_BASE"},
    {"llama.cpp", "--rope-freq-scale", "LLAMA_ARG_ROPE_FREQ_SCALE"},
    {"llama.cpp", "--yarn-orig-ctx", "LLAMA_ARG_YARN_ORIG_CTX"},
    {"llama.cpp", "--ctx-size", "LLAMA_ARG_CTX_SIZE"},
    {"llama.cpp", "--parallel", "LLAMA_ARG_N_PARALLEL"},
    {"llama.cpp", "--kv-unified", "LLAMA_ARG_KV_UNIFIED", true},
    {"lms", "--ctx-size", "--context-length"},
    {"lms", "--ctx-size", "-c"},
    {"lms", "--rope-freq-base"},  // of its form: lms itself has no such flag
    {"lms", "--rope-freq-scale"},
    {"llama_cpp", "--ctx-size", "--n-ctx"},  // llama-cpp-python's
    {"llama_cpp", "--rope-freq-base"},
    {"llama_cpp", "--rope-freq-scale"},
    {"llama_cpp", "--yarn-orig-ctx"},
    {"llama_cpp", "--yarn-ext-factor"},
    {"llama_cpp", "--yarn-attn-factor"},
    {"llama_cpp", "--yarn-beta-fast"},
    {"llama_cpp", "--yarn-beta-slow"},
    {"tabbyapi", "--max-seq-len"},
    {"tabbyapi", "--cache-size"},
    {"tabbyapi", "--rope-scale"},
    {"tabbyapi", "--rope-alpha"},
    {"tabbyapi", "--backend"},
    {"exllamav2", "--max-seq-len"},
    {"exllamav2", "--max-seq-len", "--ctx-size"},
    {"exllamav2", "--rope-scale", "--compress-pos-emb"},
    {"exllamav2", "--rope-alpha", "--alpha-value"},
    {"exllamav2", "--backend", "--loader"},
    {"exllamav3", "--max-seq-len"},
    {"exllamav3", "--max-seq-len", "--ctx-size"},
    {"exllamav3", "--rope-scale", "--compress-pos-emb"},
    {"exllamav3", "--rope-alpha", "--alpha-value"},
    {"exllamav3", "--backend", "--loader"},
    {"koboldcpp", "--ctx-size", "--contextsize"},
    {"koboldcpp", "--ropeconfig"},  // scale, then base
    {"koboldcpp", "--quantkv"},
    {"koboldcpp", "--noshift"},
    // What people write, and none of its commands has; the name of a variable that it does not read.
    {"ollama", "--num-ctx"},
    {"ollama", "--num-ctx", "--ctx-size"},
    {"ollama", "--num-ctx", "--context-length"},
    {"ollama", "--num-ctx", "-c"},
    {"ollama", "OLLAMA_NUM_CTX"},
    {"ollama", "--ctx-size", "OLLAMA_CONTEXT_LENGTH"},  // a variable
    {"ollama runner", "--ctx-size"},  // how `ollama serve` starts it, as ps prints it
    {"ollama runner", "--parallel"},
    {"vllm", "--hf-overrides"},
    {"vllm", "--max-model-len"},
    {"vllm", "--disable-sliding-window", "", true},
    {"vllm", "--allow-longer", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"},  // a variable
    {"vllm", "--speculative-config"},
    {"vllm", "--max-num-batched-tokens"},
    {"vllm", "--no-enable-chunked-prefill", "", true},
    {"vllm", "--speculative-model"},
    {"vllm", "--rope-scaling"},
    {"vllm", "--rope-theta"},
    {"sglang", "--json-model-override-args"},
    {"sglang", "--context-length"},
    {"sglang", "--allow-longer", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"},  // a variable
    {"sglang", "--speculative-draft-model-path", "--speculative-draft"},
    {"sglang", "--speculative-algorithm", "--speculative-algo"},
    {"lmdeploy", "--hf-overrides"},
    {"lmdeploy", "--session-len"},
    {"lmdeploy", "--backend"},
    {"lmdeploy", "--cache-max-entry-count"},
    {"lmdeploy", "--rope-scaling-factor"},
    {"onnxruntime-genai", "--max-length"},
    {"lightllm", "--max-req-total-len"},
    {"tensorrt-llm", "--max-seq-len"},
    {"tensorrt-llm", "--max-input-len"},
    {"tensorrt-llm", "--max-output-len"},  // before 0.12
    {"tensorrt-llm", "--max-num-tokens"},
    {"tensorrt-llm", "--enable-chunked-prefill", "", true},
    {"tgi", "--rope-scaling"},
    {"tgi", "--rope-factor"},
    {"tgi", "--max-total-tokens"},
    {"tgi", "--max-input-tokens", "--max-input-length"},
    {"tgi", "--rope-scaling", "ROPE_SCALING"},  // variables of its image
    {"tgi", "--rope-factor", "ROPE_FACTOR"},
    {"tgi", "--max-total-tokens", "MAX_TOTAL_TOKENS"},
    {"tgi", "--max-input-tokens", "MAX_INPUT_TOKENS"},
    {"tgi", "--max-input-tokens", "MAX_INPUT_LENGTH"},
    {"megatron-core", "--position-embedding-type"},
    {"megatron-core", "--use-rotary-position-embeddings", "", true},
    {"megatron-core", "--rotary-base"},
    {"megatron-core", "--rotary-percent"},
    {"megatron-core", "--rotary-interleaved", "", true},
    {"megatron-core", "--max-position-embeddings"},
    {"megatron-core", "--rotary-seq-len-interpolation-factor"},
    {"megatron-core", "--use-rope-scaling", "", true},
    {"megatron-core", "--rope-scaling-factor"},
    {"megatron-core", "--yarn-rotary-scaling-factor"},
    {"megatron-core", "--yarn-original-max-position-embeddings"},
    {"megatron-core", "--yarn-beta-fast"},
    {"megatron-core", "--yarn-beta-slow"},
    {"megatron-core", "--yarn-correction-range-round-to-int", "", true},
    {"megatron-core", "--no-yarn-correction-range-round-to-int", "", true},
    // Of multi-latent attention.
    {"megatron-core", "--multi-latent-attention", "", true},
    {"megatron-core", "--rope-type"},
    {"megatron-core", "--rotary-scaling-factor"},
    {"megatron-core", "--original-max-position-embeddings"},
    {"megatron-core", "--beta-fast"},
    {"megatron-core", "--beta-slow"},
    {"megatron-core", "--mrope-section"},
    {"megatron-core", "--mscale"},
    {"megatron-core", "--mscale-all-dim"},
    {"megatron-core", "--no-rope-fusion", "", true},
    {"megatron-core", "--seq-length"}};

const KnownFlag* known(std::string_view owner, std::string_view name) {
  const auto at = std::ranges::find_if(known_flags, [&](const KnownFlag& flag) {
    return flag.owner == owner &&
           (flag.name == name || (!flag.alias.empty() && flag.alias == name));
  });
  return at == std::end(known_flags) ? nullptr : at;
}

// A flag as it is known: without "=value", with dashes where the engine takes underscores for them.
std::string flag_name(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
  return name;
}

// Names that the length has in one engine or another.
bool is_length_elsewhere(std::string_view name) {
  return contains_word(
      "--max-seq-len --max-context-len --ctx-size --context-size --context-length --max-model-len "
      "--num-ctx --n-ctx",
      name);
}

// Flags alone, as posenc translate writes them, or behind a program that nobody knows: the engine
// that knows most of them. One flag of an unknown program tells nothing: many have --rope-scaling.
std::string_view engine_of_flags(std::span<const std::string> words) {
  const bool alone = !words.empty() && words.front().starts_with('-');
  std::string_view best;
  std::int64_t most = alone ? 0 : 1;
  for (const std::string_view engine : {"llama.cpp", "vllm", "sglang", "megatron-core"}) {
    std::int64_t count = std::ranges::count_if(words, [&](const std::string& word) {
      return word.starts_with('-') && known(engine, flag_name(word)) != nullptr;
    });
    // A binary of one's own name, with a file that llama.cpp alone starts.
    const bool has_gguf =
        std::ranges::any_of(words, [](const std::string& word) { return word.ends_with(".gguf"); });
    if (engine == "llama.cpp" && has_gguf && count > 0) ++count;
    if (count > most) most = count, best = engine;
  }
  return best;
}

std::vector<std::string_view> names_of(std::string_view owner) {
  std::vector<std::string_view> names;
  for (const KnownFlag& flag : known_flags)
    if (flag.owner == owner) names.push_back(flag.name);
  return names;
}

// A flag of position that the engine does not know would be refused by it, or be passed over here
// without a word.
Expected<void> check_spelling(std::string_view engine, std::string_view word) {
  const std::string name = flag_name(word);
  if (!name.starts_with("--") || name.size() < 8) return {};
  const std::vector<std::string_view> names = names_of(engine);
  const bool is_position =
      name.contains("rope") || name.contains("yarn") || name.contains("rotary");
  const bool is_near = std::ranges::any_of(names, [&](std::string_view other) {
    return edit_distance(std::string_view(name).substr(0, 64), other) <= 2;
  });
  if (!is_position && !is_near) return {};
  return fail("command", "a flag about position must be one that " + std::string(engine) + " has",
              word, suggestion(name, names));
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.") == word.npos;
}

class Flags {
 public:
  Flags(std::span<const std::string> words, std::string_view owner, CommandLine& line)
      : words_(words), owner_(owner), line_(line) {}

  Expected<void> read() {
    while (at_ < words_.size()) POSENC_CHECK(one(words_[at_++]));
    return put_overrides();
  }

 private:
  Expected<void> one(std::string_view word) {
    if (!word.starts_with('-')) return {};
    if (word.starts_with(dotted_override) && owner_ == "vllm") return dotted(word);
    const KnownFlag* flag = known(owner_, flag_name(word));
    if (!flag && is_length_elsewhere(flag_name(word))) line_.foreign_lengths.emplace_back(word);
    if (!flag) return check_spelling(owner_, word);
    if (flag->is_switch) {
      put(flag->name, "true");
      return {};
    }
    const std::size_t equals = word.find('=');
    if (equals != word.npos && owner_ == "llama.cpp")
      return fail("command", "llama.cpp takes a value behind a blank", word,
                  "write " + std::string(flag->name) + " VALUE");
    const std::string value = equals != word.npos   ? std::string(word.substr(equals + 1))
                              : at_ < words_.size() ? words_[at_++]
                                                    : std::string();
    if (value.empty() || value.starts_with("--"))
      return fail("command", std::string(flag->name) + " must have a value", value,
                  "write it behind the flag");
    if (flag->name == "--ropeconfig") return rope_config(value);
    put(flag->name, value);
    return {};
  }

  // vLLM's --hf-overrides.text_config.rope_theta 1e6: a path into the object, and one value.
  Expected<void> dotted(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string value = equals != word.npos   ? std::string(word.substr(equals + 1))
                              : at_ < words_.size() ? words_[at_++]
                                                    : std::string();
    if (value.empty() || value.starts_with("--"))
      return fail("command", std::string(word) + " must have a value", value,
                  "write it behind the flag");
    if (std::ranges::count(word.substr(0, equals), '.') > deepest_override)
      return fail("command", "an override's path must be short", std::string(word.substr(0, 64)),
                  "write --hf-overrides '{\"rope_parameters\":{…}}'");
    overrides_.put(word.substr(0, equals).substr(dotted_override.size()), value);
    return {};
  }

  // Values that stand alone are put into the object that the line may have besides.
  Expected<void> put_overrides() {
    if (overrides_.empty()) return {};
    const std::string name(dotted_override.substr(0, dotted_override.size() - 1));
    if (const CommandFlag* flag = line_.find(name))
      POSENC_CHECK(overrides_.put_below(flag->value, name));
    put(name, overrides_.text());
    return {};
  }

  // koboldcpp's --ropeconfig SCALE [BASE].
  Expected<void> rope_config(const std::string& scale) {
    put("--rope-freq-scale", scale);
    if (at_ < words_.size() && is_number(words_[at_])) put("--rope-freq-base", words_[at_++]);
    return {};
  }

  void put(std::string_view name, std::string value) {
    // "--contextsize 8192, works fine"
    while (value.size() > 1 && is_digit(value.front()) &&
           std::string_view(",;:").contains(value.back()))
      value.pop_back();
    line_.flags.push_back({std::string(name), std::move(value)});
  }

  std::span<const std::string> words_;
  std::string_view owner_;
  CommandLine& line_;
  DottedObject overrides_;
  std::size_t at_ = 0;
};

// What stands behind the colon of an image's name.
std::string_view tag_of_image(std::string_view word) {
  const std::size_t colon = word.rfind(':');
  return colon == word.npos || !word.contains('/') ? std::string_view() : word.substr(colon + 1);
}

// "0.11.0" of vllm/vllm-openai:v0.11.0, "b6200" of llama.cpp:server-cuda-b6200; "" where a tag is
// no version.
std::string version_of_image(std::string_view word) {
  std::string_view tag = tag_of_image(word);
  const std::string_view build = tag.substr(tag.rfind('-') + 1);
  constexpr std::size_t fewest_digits = 4;
  if (build.size() > fewest_digits && build.front() == 'b' &&
      build.find_first_not_of("0123456789", 1) == build.npos)
    return std::string(build);
  if (tag.starts_with('v')) tag.remove_prefix(1);
  tag = tag.substr(0, std::min(tag.find_first_not_of("0123456789."), tag.size()));
  if (tag.ends_with('.')) tag.remove_suffix(1);
  return std::ranges::count(tag, '.') >= 1 ? std::string(tag) : std::string();
}

// A unit of systemd, or a shell's export, without the program beside it.
bool names_variables_of_ollama(std::span<const std::string> words) {
  return std::ranges::any_of(words, [](std::string_view word) {
    constexpr std::string_view of_systemd = "Environment=";
    if (word.starts_with(of_systemd)) word.remove_prefix(of_systemd.size());
    return word.starts_with("OLLAMA_CONTEXT_LENGTH=") || word.starts_with("OLLAMA_NUM_CTX=");
  });
}

// NAME=VALUE before the program: an engine's setting.
void read_variables(std::span<const std::string> words, std::string_view owner, CommandLine& line) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    constexpr std::string_view of_systemd = "Environment=";
    if (word.starts_with(of_systemd)) word.remove_prefix(of_systemd.size());
    const bool of_yaml = word.ends_with(':') && i + 1 < words.size();  // NAME: 1
    const std::size_t equals = of_yaml ? word.size() - 1 : word.find('=');
    if (equals == word.npos || word.starts_with('-')) continue;
    const std::string_view value = of_yaml ? words[i + 1] : word.substr(equals + 1);
    const KnownFlag* flag = known(owner, word.substr(0, equals));
    const bool is_off = flag && flag->is_switch && (value == "0" || value == "false");
    if (flag && !is_off) line.flags.push_back({std::string(flag->name), std::string(value)});
  }
}

// The engine that a program hands its flags on to, as the line tells it; "": none that is known.
std::string engine_behind(const Program& program, std::span<const std::string> words) {
  if (program.engine_flag.empty()) return {};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (flag_name(words[i]) != program.engine_flag) continue;
    std::string engine = words[i + 1];
    std::ranges::transform(engine, engine.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    // text-generation-webui's loaders, ExLlamav2_HF.
    if (engine.ends_with("_hf")) engine.resize(engine.size() - 3);
    for (const char* known : {"vllm", "sglang", "exllamav2", "exllamav3"})
      if (engine == known) return engine;
  }
  return {};
}

}  // namespace

std::string in_variables_of_llama_cpp(std::string cure) {
  for (const KnownFlag& flag : known_flags) {
    if (!flag.alias.starts_with("LLAMA_ARG_")) continue;
    std::vector<std::string> words{std::string(flag.name)};
    for (const KnownFlag& other : known_flags)
      if (other.owner == flag.owner && other.name == flag.name && other.alias.starts_with('-'))
        words.emplace_back(other.alias);
    for (const std::string& word : words) {
      const std::string typed = word + (flag.is_switch ? "" : " ");
      for (std::size_t at = cure.find(typed); at != cure.npos; at = cure.find(typed, at + 1)) {
        if (at > 0 && cure[at - 1] != ' ') continue;
        // "all that -c has" names the variable alone.
        const bool has_value = at + typed.size() < cure.size() &&
                               !(cure[at + typed.size()] >= 'a' && cure[at + typed.size()] <= 'z');
        cure.replace(at, typed.size(),
                     std::string(flag.alias) + (flag.is_switch ? "=1"
                                                : has_value    ? "="
                                                               : " "));
      }
    }
  }
  return cure;
}

const CommandFlag* CommandLine::find(std::string_view name) const {
  const CommandFlag* last = nullptr;
  for (const CommandFlag& flag : flags)
    if (flag.name == name) last = &flag;
  return last;
}

Expected<std::vector<std::string>> shell_words(std::string_view text) {
  if (text.size() > longest_command)
    return fail("command", "must be at most 1 MiB", std::to_string(text.size()) + " bytes",
                "give the command line alone");
  if (text.contains('\0'))
    return fail("command", "must be text", "a zero byte", "give the command line alone");
  return ShellWords(text).read();
}

Expected<CommandLine> read_command_line(std::string_view text) {
  POSENC_TRY(words, shell_words(text));
  CommandLine line;
  std::size_t first = 0;
  std::string_view owner;
  if (const auto started = started_program(words)) {
    const Program& program = *started->program;
    const std::string behind = engine_behind(program, words);
    if (program.engine.empty() && behind.empty())
      return fail("command", "posenc has no profile of " + std::string(program.title), program.word,
                  program.advice);
    first = started->behind;
    line.program = program.word;
    line.engine = behind.empty() ? std::string(program.engine) : behind;
    owner = behind.empty() ? program.owner() : std::string_view(line.engine);
    const std::string_view started_by = words[first - 1];
    line.version = version_of_image(started_by);
    // Its images are its server, its command line or both.
    if (line.program == "llama.cpp" && tag_of_image(started_by).starts_with("server"))
      line.program = "llama-server";
    read_variables(std::span(words).first(first), owner, line);
    if (owner == "ollama" && first < words.size() && words[first] == "runner")
      owner = "ollama runner";
  } else if (names_variables_of_ollama(words)) {
    owner = line.engine = "ollama";
    read_variables(words, owner, line);
  } else {
    owner = line.engine = engine_of_flags(words);
  }
  if (line.engine.empty())
    return fail("command", "must name an engine whose flags are known", text.substr(0, 60),
                "give a line with llama-server, vllm serve, python -m sglang.launch_server, "
                "lmdeploy serve, trtllm-serve, trtllm-build, text-generation-launcher, "
                "mlx_lm.server, ollama, "
                "lms, koboldcpp or pretrain_gpt.py");
  const auto end =
      std::find(words.begin() + static_cast<std::ptrdiff_t>(first), words.end(), end_of_command);
  POSENC_CHECK(
      Flags({words.begin() + static_cast<std::ptrdiff_t>(first), end}, owner, line).read());
  if (const CommandFlag* backend = line.find("--backend"); backend && owner == "tabbyapi")
    line.engine = backend->value == "exllamav2" ? "exllamav2" : "exllamav3";
  return line;
}

std::string_view without(std::string_view text, std::string_view characters) {
  const std::size_t first = text.find_first_not_of(characters);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(characters) + 1 - first);
}

}  // namespace posenc::detail
