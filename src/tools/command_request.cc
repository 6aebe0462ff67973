// What one request of a server reaches: the context is shared among slots, self-extend stretches
// distances, a linear scaling is capped, and a draft has a length of its own.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/model/names.h"
#include "src/tools/command_line.h"
#include "src/tools/recipes.h"
#include "src/tools/told_rope.h"

namespace posenc::detail {
namespace {

class Request {
 public:
  Request(const Model& file, const Model& told, const CommandLine& line, std::string_view version,
          std::int64_t asked, std::vector<Finding>& findings)
      : file_(file),
        told_(told),
        line_(line),
        version_(version),
        asked_(asked),
        findings_(findings) {}

  Expected<std::int64_t> tokens() {
    for (const std::string& word : line_.foreign_lengths) length_of_another(word);
    POSENC_CHECK(share_among_slots());
    POSENC_TRY(reached, made_for());
    POSENC_CHECK(draft());
    derived_beside_a_scaling();
    if (line_.engine == "vllm") of_gemma3();
    POSENC_CHECK(limits_of_a_prompt());
    without_windows();
    inverse_factor();
    keys_that_cannot_move();
    if (asked_ > reached && reached > 0 && stretches_itself())
      say("stretched_by_engine", Severity::note, grouped(reached), grouped(asked_),
          "koboldcpp raises the base by itself (NTK-aware) where --contextsize is beyond what the "
          "model is made for and no --ropeconfig is given",
          "--ropeconfig SCALE BASE sets a scaling that the model was trained with");
    else if (asked_ > reached && reached > 0 && line_.engine == "ollama")
      say("context_capped", Severity::warning, grouped(asked_), grouped(reached),
          "Ollama caps the context at the file's, cuts longer prompts off at their beginning, and "
          "has no setting for a scaling",
          "ask for up to " + std::to_string(reached) +
              ", or serve the model with an engine that scales");
    else if (asked_ > reached && reached > 0 && asked_ > grown_by_length(told_))
      beyond(reached);
    else if (auto few = few_tokens(line_, static_cast<double>(asked_)); few && reached > 4 * asked_)
      findings_.push_back(*std::move(few));
    return asked_;
  }

 private:
  void say(std::string code, Severity severity, std::string expected, std::string found,
           std::string message, std::string cure) {
    findings_.push_back({.code = std::move(code),
                         .severity = severity,
                         .expected = std::move(expected),
                         .found = std::move(found),
                         .message = std::move(message),
                         .cure = std::move(cure)});
  }

  // A flag by which another engine is told the length.
  void length_of_another(const std::string& word) {
    const std::string_view own = line_.engine == "vllm"        ? "--max-model-len"
                                 : line_.engine == "sglang"    ? "--context-length"
                                 : line_.engine == "llama.cpp" ? "-c"
                                                               : "";
    if (own.empty()) return;
    say("flag_refused", Severity::error, "", word,
        word + " is no flag of " + line_.engine + " for the length", std::string(own) + " TOKENS");
  }

  // A length that the file does not promise, and no angle that training has not shown.
  void beyond_by_windows(std::int64_t window, bool ends) {
    const std::string asked = std::to_string(asked_);
    const std::string longer = "max_position_embeddings " + asked + " in the config.json";
    const bool allowed = line_.find("--allow-longer");  // the variable stands there already
    say("beyond_context", Severity::warning, grouped(told_.context), grouped(asked_),
        std::string("more tokens than the file says") + (ends ? ": vLLM ends with an error" : "") +
            "; no layer that rotates sees further back than " + grouped(window) +
            " tokens (sliding_window), so that no scaling is wanted",
        line_.engine == "vllm"
            ? std::string(allowed ? "" : "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 before the line, with ") +
                  "--hf-overrides '{\"max_position_embeddings\":" + asked +
                  "}', which makes its table of cos and sin as long; a scaling would harm"
        : line_.engine == "sglang" && !allowed
            ? "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 before the line, or " + longer
            : longer + "; a scaling would harm");
  }

  void beyond(std::int64_t reached) {
    const bool ends = line_.engine == "vllm" && !line_.find("--allow-longer");
    const bool overrules = line_.engine == "vllm" && !ends;
    const Recipe* recipe = recipe_of(file_);
    // What vLLM's reader of Mistral's format takes where the file says no length.
    constexpr std::int64_t usual_of_params = 128000;
    const bool by_default = !file_.files.empty() &&
                            file_.files.front().format == FileFormat::params &&
                            file_.context == usual_of_params && line_.engine == "vllm";
    if (line_.find("--max-output-len"))
      return say("beyond_context", Severity::warning, grouped(reached), grouped(asked_),
                 "trtllm-build before 0.12 adds max_input_len and max_output_len: prompt and "
                 "answer together get more tokens than the model is made for (max_num_tokens is "
                 "what a step of the whole batch may have)",
                 "the two within " + std::to_string(reached) +
                     " in all; from 0.12 on --max_seq_len " + std::to_string(reached) +
                     " says it at once");
    if (by_default)
      return say("beyond_context", Severity::warning, grouped(reached), grouped(asked_),
                 "params.json says no length, so vLLM takes 128,000 of its own (--config-format "
                 "mistral) and makes its table of cos and sin for it: positions behind are outside "
                 "the table, which is bad text or an error of the GPU",
                 "--max-model-len 128000, or --config-format hf, whose config.json says how far "
                 "the model reaches");
    if (const std::int64_t window = widest_window(told_);
        window > 0 && window <= reached && told_.context > 0)
      return beyond_by_windows(window, ends);
    say("beyond_context", Severity::warning, grouped(reached), grouped(asked_),
        ends ? "more tokens than the model is made for: vLLM ends with an error"
        : overrules
            ? "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 lets vLLM start for more tokens than the model "
              "is made for, and nothing is scaled: beyond them text breaks"
            : "the engine is started for more tokens than the model is made for",
        (overrules ? "drop the variable and write --max-model-len " + std::to_string(reached) +
                         "; for longer texts "
                   : "") +
            self_extended_further() + "posenc extend MODEL --to " + std::to_string(asked_) +
            " --engine " + line_.engine + " writes a scaling for it" +
            (recipe && recipe->factor * static_cast<double>(recipe->trained) >=
                           static_cast<double>(asked_)
                 ? "; " + std::string(recipe->source) + " publish YaRN by " +
                       number_text(recipe->factor) + " of " + grouped(recipe->trained)
                 : ""));
  }

  // A number of at least 1; `usual` where the flag is not there.
  Expected<std::int64_t> count(std::string_view name, std::int64_t usual) const {
    const CommandFlag* flag = line_.find(name);
    if (!flag || flag->value == "auto" || flag->value == "-1") return usual;
    POSENC_TRY(value, number_of_flag(*flag));
    if (value >= 0 && value == std::floor(value) && value <= 0x1p40)
      return value == 0 ? usual : static_cast<std::int64_t>(value);
    return fail("command", flag->name + " must be a whole number", flag->value, "write it as 4");
  }

  // With one cache for all slots -c counts the cells of all, and each slot ends where the model
  // does.
  Expected<void> share_cells(std::int64_t slots) {
    const std::int64_t reached = std::max(file_.context, reach(told_));
    if (reached <= 0 || asked_ <= reached || asked_ > reached * slots) return {};
    say("slots", Severity::note, grouped(asked_), grouped(reached),
        std::to_string(slots) + " slots share " + grouped(asked_) +
            " cells, and each ends at the " + grouped(reached) +
            " tokens that the model is made for",
        "");
    asked_ = reached;
    return {};
  }

  // llama.cpp shares -c among its slots, unless they share one cache.
  Expected<void> share_among_slots() {
    POSENC_TRY(slots, count("--parallel", 1));
    if (slots == 1) return {};
    if (line_.find("--kv-unified")) return share_cells(slots);
    const std::int64_t all = asked_ > 0 ? asked_ : file_.context;
    asked_ = all / slots;
    const std::int64_t reached = std::max(file_.context, reach(told_));
    const bool whole = reached > 0 && asked_ >= reached;
    const std::int64_t each = reached > 0 ? std::min(all, reached) : all;
    if (line_.engine == "ollama") {  // which starts it for num_ctx times OLLAMA_NUM_PARALLEL
      say("slots", Severity::note, grouped(all), grouped(asked_),
          "Ollama starts its runner for num_ctx times OLLAMA_NUM_PARALLEL: each of " +
              std::to_string(slots) + " requests at a time has " + grouped(asked_) +
              " tokens, and the memory is that of all",
          "OLLAMA_NUM_PARALLEL=1 takes the memory of one; num_ctx says what each has");
      return {};
    }
    say("slots", Severity::note, grouped(all), grouped(asked_),
        "each of " + std::to_string(slots) + " slots has " + grouped(asked_) + " tokens" +
            (whole ? asked_ == reached ? ", all that the model is made for"
                                       : ", no fewer than the model is made for"
                   : ": a longer prompt is refused, or loses its beginning"),
        whole ? ""
              : "-c " + std::to_string(each * slots) + " gives each slot " + grouped(each) +
                    "; --kv-unified lets one slot have them all");
    return {};
  }

  static const Linear* linear_of(const Model& model) {
    for (const LayerGroup& group : model.groups) {
      const Rope* rope = rope_of(group);
      if (!rope || is_tower(group.stack)) continue;
      if (const auto* linear = std::get_if<Linear>(&rope->scaling)) return linear;
    }
    return nullptr;
  }

  Expected<std::int64_t> made_for() {
    std::int64_t reached = std::max(told_.context, reach(told_));
    const Linear *linear = linear_of(told_), *before = linear_of(file_);
    const bool divides = linear && (!before || before->factor != linear->factor);
    const double factor = divides ? linear->factor : stretch_of_base(file_, told_);
    // An override that promises what nothing stretches.
    const Rope *told_rope = rope_of_text(told_), *file_rope = rope_of_text(file_);
    // Llama 3's factor does not say how far it reaches.
    const bool rescaled = told_rope && file_rope && *told_rope != *file_rope &&
                          std::holds_alternative<Llama3>(told_rope->scaling);
    if (factor <= 1 && file_.context > 0 && told_.context > file_.context && !rescaled)
      reached = std::max({file_.context, reach(file_), reach(told_)});
    if (line_.engine == "llama.cpp" && told_.context < file_.context && told_.context > 0) {
      reached = file_.context;
      if (asked_ > told_.context) {
        say("context_capped", Severity::warning, grouped(asked_), grouped(told_.context),
            "--override-kv says fewer tokens than the file, and llama-server caps a slot at them",
            "drop it: the model is made for " + grouped(file_.context));
        asked_ = told_.context;
      }
    }
    if (factor > 1 && file_.context > 0) {
      reached =
          std::max(reached, static_cast<std::int64_t>(static_cast<double>(file_.context) * factor));
      const bool of_lm_studio = line_.program == "lms";
      // YaRN is meant, which is told: a cure would keep the linear scale.
      const bool lacks_type = line_.find("--yarn-orig-ctx") && !line_.find("--rope-scaling");
      if ((of_lm_studio || line_.program.ends_with("llama-server")) && asked_ > told_.context &&
          !lacks_type)
        say("context_capped", Severity::warning, grouped(asked_), grouped(told_.context),
            std::string(of_lm_studio ? "LM Studio runs llama.cpp, which" : "llama-server") +
                " caps a slot at the file's n_ctx_train: " +
                (divides ? "a linear scaling (RoPE frequency scale)" : "a larger base") +
                " does not lift it, YaRN does",
            of_lm_studio ? "take a GGUF that has YaRN itself: posenc translate MODEL --to gguf "
                           "writes its keys"
                         : "add " + override_of_length());
    }
    if (line_.program.ends_with("llama-server") && scales_by_yarn() && file_.context > 0 &&
        asked_ > file_.context && told_.context == file_.context)
      say("version_needed", Severity::note, grouped(asked_), grouped(file_.context),
          "builds before llama.cpp#28030 (30 August 2026) cap a slot at the file's length beside "
          "YaRN too",
          "update it, or add " + override_of_length());
    return self_extend(reached);
  }

  std::string override_of_length() const {
    const std::string name = architecture_of(file_.family),
                      flag = ".context_length=int:" + std::to_string(asked_);
    if (!name.empty()) return "--override-kv " + name + flag;
    return "--override-kv ARCH" + flag + ", ARCH as the file's general.architecture";
  }

  // By flags, which the file does not have.
  bool scales_by_yarn() const {
    for (std::size_t i = 0; i < std::min(file_.groups.size(), told_.groups.size()); ++i) {
      const Rope *before = rope_of(file_.groups[i]), *now = rope_of(told_.groups[i]);
      if (before && now && std::holds_alternative<Yarn>(now->scaling) &&
          !(before->scaling == now->scaling))
        return true;
    }
    return false;
  }

  // (trained − width) · n + width: main.cpp of llama.cpp, 2401.01325.
  Expected<std::int64_t> self_extend(std::int64_t reached) {
    POSENC_TRY(n, count("--grp-attn-n", 1));
    POSENC_TRY(width, count("--grp-attn-w", 512));
    if (n == 1 || reached == 0) return reached;
    if (width % n != 0)
      return fail("command", "--grp-attn-w must be a multiple of --grp-attn-n",
                  std::to_string(width), "llama.cpp stops otherwise");
    if (width >= reached) {
      say("self_extend", Severity::warning, grouped(reached), grouped(reached),
          "--grp-attn-w " + grouped(width) + " is not below the trained " + grouped(reached) +
              ": of (trained − w)·n + w (2401.01325) nothing is left but the trained length",
          "half of the trained length is usual: --grp-attn-w " + std::to_string(reached / 2));
      return reached;
    }
    const std::int64_t stretched = (reached - width) * n + width;
    say("self_extend", Severity::note, grouped(reached), grouped(stretched),
        "distances beyond " + grouped(width) + " tokens are divided by " + std::to_string(n) +
            " (self-extend), so the trained " + grouped(reached) + " reach (" + grouped(reached) +
            " − " + grouped(width) + ")·" + std::to_string(n) + " + " + grouped(width) + " = " +
            grouped(stretched),
        "");
    if (line_.program.ends_with("llama-server"))
      say("flag_removed", Severity::warning, "", "--grp-attn-n",
          "llama-server has had no self-extend since October 2024 (llama.cpp#9860), and stops at "
          "the flag",
          "run llama-cli, or scale: posenc extend MODEL --to LENGTH --engine llama.cpp");
    return stretched;
  }

  // The least --grp-attn-n that reaches what is asked for, by the width as it is; "" without one.
  std::string self_extended_further() const {
    const std::int64_t trained = std::max(told_.context, reach(told_)),
                       width = count("--grp-attn-w", 512).value_or(0);
    if (count("--grp-attn-n", 1).value_or(1) == 1 || width >= trained) return {};
    std::int64_t n = (asked_ - width + trained - width - 1) / (trained - width);
    while (n <= width && width % n != 0) ++n;
    if (n > width) return {};
    return "--grp-attn-n " + std::to_string(n) + " reaches " +
           grouped((trained - width) * n + width) + "; or ";
  }

  // koboldcpp shifts a full context unless it is told not to, and moves no key that is quantised.
  void keys_that_cannot_move() {
    const CommandFlag* quantised = line_.find("--quantkv");
    if (!line_.program.starts_with("koboldcpp") || !quantised || line_.find("--noshift") ||
        number_of_flag(*quantised).value_or(0) < 1)
      return;
    say("context_full", Severity::warning, "", "--quantkv " + quantised->value,
        "cached keys that are quantised cannot be moved: where the talk fills the context, context "
        "shift, which is on, does nothing or ends the program",
        "--noshift, or --quantkv 0");
  }

  bool stretches_itself() const {
    return line_.program.starts_with("koboldcpp") && !line_.find("--rope-freq-scale") &&
           !line_.find("--rope-freq-base");
  }

  // An engine that takes max_position_embeddings beside YaRN as it stands serves no more, and
  // refuses a longer length: SGLang where the trained length stands beside the factor
  // (hf_transformers_utils.py), vLLM from 0.30 on (config/model.py).
  void derived_beside_a_scaling() {
    const std::int64_t scaled = reach(told_), derived = told_.context;
    const bool vllm = line_.engine == "vllm", multiplies = vllm && is_before(version_, "0.30");
    const bool of_config = file_.files.empty() || file_.files.front().format == FileFormat::config;
    if ((line_.engine != "sglang" && !vllm) || derived == 0 || scaled <= derived) return;
    const Rope* rope = rope_of_text(told_);
    const bool by_yarn = rope && std::holds_alternative<Yarn>(rope->scaling);
    if (vllm && told_.family.starts_with("gemma3")) return;  // of_gemma3()
    if (vllm && (!of_config || !by_yarn || multiplies || line_.find("--rope-scaling"))) return;
    const std::string_view variable =
        vllm ? "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1" : "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1";
    const std::string lifted = longer_context(scaled);
    const bool perhaps = vllm && version_.empty();  // it may be an older one
    if (asked_ > derived && asked_ <= scaled && !line_.find("--allow-longer"))
      say("context_refused", perhaps ? Severity::note : Severity::error, grouped(asked_),
          grouped(derived),
          vllm ? "vLLM from 0.30 on serves the " + grouped(derived) +
                     " tokens of max_position_embeddings beside YaRN, and ends with ValueError "
                     "where more are asked for; 0.29 and older multiply by the factor"
               : "SGLang derives " + grouped(derived) +
                     " tokens from the file, as the scaling names the trained length, and ends "
                     "with ValueError where more are asked for",
          lifted + ", or " + std::string(variable) + " before the line");
    else if (asked_ == 0)
      say("context_not_lifted", perhaps ? Severity::note : Severity::warning, grouped(scaled),
          grouped(derived),
          "the scaling stretches the angles and not the length that " +
              std::string(vllm ? "vLLM (from 0.30 on) serves" : "SGLang serves") +
              ": longer requests are refused",
          vllm ? lifted
               : "--context-length " + std::to_string(scaled) + " with " + std::string(variable) +
                     " before the line, or " + lifted);
  }

  // Gemma 3's length is taken as scaled already, whatever the factor (config/model.py).
  void of_gemma3() {
    if (!told_.family.starts_with("gemma3") || asked_ <= told_.context || told_.context == 0 ||
        line_.find("--allow-longer"))
      return;
    say("context_refused", Severity::error, grouped(asked_), grouped(told_.context),
        "vLLM takes the " + grouped(told_.context) +
            " tokens of Gemma 3's file as they stand, whatever its factor, and ends with "
            "ValueError where more are asked for",
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 before the line (a longer max_position_embeddings would "
        "make its table of cos and sin longer by the factor)");
  }

  // Where the line can say the length, or the file.
  std::string longer_context(std::int64_t tokens) const {
    const bool vllm = line_.engine == "vllm";
    const std::string said = std::to_string(tokens);
    const bool overrides = line_.find(vllm ? "--hf-overrides" : "--json-model-override-args");
    if (!vllm)
      return "max_position_embeddings " + said +
             (overrides ? " beside the scaling in the override" : " in the config.json");
    const std::string key = "\"max_position_embeddings\":" + said;
    if (overrides) return key + " beside rope_parameters in --hf-overrides";
    return "--hf-overrides '" + within_parts(parts_around(file_), "{" + key + "}") + "'";
  }

  // --rope-freq-scale is what positions are multiplied by.
  void inverse_factor() {
    const CommandFlag* flag = line_.find("--rope-freq-scale");
    const auto told = flag ? number_of_flag(*flag) : Expected<double>(0.0);
    if (!told || *told <= 1) return;
    const std::string inverse = number_text(std::round(1e6 / *told) / 1e6);
    say("factor_below_one", Severity::error, inverse, flag->value,
        "--rope-freq-scale is the inverse of a factor: " + flag->value +
            " turns every pair faster by as much, so that text is garbled from its first words on",
        "--rope-freq-scale " + inverse + ", or --rope-scale " + flag->value);
  }

  // vLLM then serves no token that some window does not reach.
  void without_windows() {
    std::int64_t window = 0;
    for (const LayerGroup& group : told_.groups)
      if (const std::int64_t own = is_tower(group.stack) ? 0 : group.window.value_or(0);
          own > 0 && (window == 0 || own < window))
        window = own;
    const std::int64_t wanted = asked_ > 0 ? asked_ : told_.context;
    if (window == 0 || wanted <= window || !line_.find("--disable-sliding-window")) return;
    say("context_capped", Severity::warning, grouped(wanted), grouped(window),
        "--disable-sliding-window serves the model up to its window alone, and vLLM refuses a "
        "longer --max-model-len: the model reaches further with its windows",
        "drop --disable-sliding-window (vLLM keeps windows beside cached prefixes; versions of "
        "2024 could not), or --max-model-len " +
            std::to_string(window) + "; no scaling is wanted");
  }

  // Flags that bound a prompt, whatever the model reaches.
  Expected<void> limits_of_a_prompt() {
    const CommandFlag* no_flag = line_.find("--num-ctx");
    if (line_.find("OLLAMA_NUM_CTX"))
      say("flag_unread", Severity::error, "", "OLLAMA_NUM_CTX",
          "Ollama has no such variable, and runs its default: 4,096 tokens, 2,048 in older "
          "versions",
          "OLLAMA_CONTEXT_LENGTH before `ollama serve` (0.5.13 or later), or num_ctx among the "
          "options of the request");
    else if (no_flag)
      say("flag_refused", Severity::error, "", "num_ctx as a flag, " + no_flag->value,
          "`ollama run` and `ollama serve` have no flag of the context, and end with 'unknown "
          "flag'",
          "/set parameter num_ctx " + no_flag->value + " within `ollama run`, PARAMETER num_ctx " +
              no_flag->value + " in a Modelfile, or OLLAMA_CONTEXT_LENGTH=" + no_flag->value +
              " ollama serve");
    else if (line_.engine == "ollama" && asked_ == 0)
      say("context_defaulted", Severity::warning, "", "",
          "without num_ctx Ollama chooses the context by itself, 4,096 tokens on small machines, "
          "and cuts longer prompts off at their beginning",
          "OLLAMA_CONTEXT_LENGTH=" + std::to_string(std::max(told_.context, reach(told_))) +
              " ollama serve, or /set parameter num_ctx");
    if (line_.find("--context-shift"))
      say("context_shift", Severity::note, "", "--context-shift",
          "when the slot is full it drops the oldest tokens behind the first --keep of them (0: "
          "the system prompt, too), and moves the cached keys of the rest; a prompt that is longer "
          "than its slot is refused all the same",
          "-c of the whole talk, or --keep with as many tokens as the system prompt has");
    const bool recurrent = std::ranges::any_of(
        told_.groups, [](const LayerGroup& group) { return group.mixer == Mixer::recurrence; });
    if (line_.engine == "llama.cpp" && recurrent)
      say("prompt_again", Severity::note, "", "",
          "some layers are recurrent, and their state cannot be taken back: no context shift, and "
          "a prompt that differs from the one before is computed anew from its beginning; "
          "positions are right, and it costs time",
          line_.program.starts_with("koboldcpp")
              ? "--smartcache keeps states to go back to; a client that keeps the beginning of its "
                "prompts as it is"
              : "a build with checkpoints of the state (--ctx-checkpoints); a client that keeps "
                "the beginning of its prompts as it is");
    if (line_.engine == "llama.cpp" && asked_ > 0) {
      const CommandFlag* predict = line_.find("--predict");
      POSENC_TRY(tokens, predict && !predict->value.starts_with('-') ? number_of_flag(*predict)
                                                                     : Expected<double>(0.0));
      const bool windows = std::ranges::any_of(
          told_.groups, [](const LayerGroup& group) { return group.window.has_value(); });
      if (tokens >= static_cast<double>(asked_))
        say("context_shift", Severity::warning, grouped(asked_),
            grouped(std::llround(std::min(tokens, 0x1p40))),
            std::string(
                "-n asks for more tokens than -c has: the oldest are dropped and cached keys "
                "moved, or generation stops") +
                (windows ? "; layers with a window rotate by a base of their own, and builds of "
                           "early 2025 moved their keys by the other one"
                         : ""),
            "-c of prompt and answer together");
    }
    POSENC_TRY(cache, count("--cache-size", 0));
    if (cache > 0 && asked_ > cache)
      say("cache_smaller", Severity::warning, grouped(asked_), grouped(cache),
          "tabbyAPI limits a text to cache_size, which is all jobs' together",
          "cache_size: " + std::to_string(asked_));
    POSENC_TRY(step, count("--max-num-batched-tokens", 0));
    const std::int64_t served = asked_ > 0 ? asked_ : told_.context;
    if (step > 0 && step < served && line_.find("--no-enable-chunked-prefill"))
      say("context_refused", Severity::error, grouped(served), grouped(step),
          "without chunked prefill vLLM takes a whole prompt in one step, and ends with an error "
          "where --max-num-batched-tokens is below the context",
          "--max-num-batched-tokens " + std::to_string(served) + ", or chunked prefill on");
    POSENC_TRY(tokens, count("--max-num-tokens", 0));
    const std::int64_t wanted = asked_ > 0 ? asked_ : std::max(told_.context, reach(told_));
    if (tokens == 0 || tokens >= wanted || line_.find("--enable-chunked-prefill")) return {};
    say("prompt_limit", Severity::warning, grouped(wanted), grouped(tokens),
        "without chunked prefill a prompt may have --max_num_tokens tokens, whatever the model "
        "reaches: longer ones are refused",
        "--max_num_tokens " + std::to_string(wanted) +
            ", or enable_chunked_prefill: true in --extra_llm_api_options");
    return {};
  }

  Expected<void> draft() {
    if (const CommandFlag* path = line_.find("--speculative-draft-model-path"))
      say_unseen_draft(path->value);
    if (const CommandFlag* path = line_.find("--speculative-model");  // older vLLM
        path && path->value != "[ngram]")
      say_unseen_draft(path->value);
    if (line_.find("--model-draft")) {
      POSENC_TRY(tokens, count("--ctx-size-draft", 0));
      const std::int64_t target = asked_ > 0 ? asked_ : told_.context;
      if (tokens > 0 && tokens < target)
        say_shorter_draft(target, tokens, "write -cd 0, or drop it");
    }
    if (const CommandFlag* flag = line_.find("--speculative-config")) return draft_of_vllm(*flag);
    return {};
  }

  void say_shorter_draft(std::int64_t target, std::int64_t draft, std::string cure) {
    say("draft_length", Severity::warning, grouped(target), grouped(draft),
        "the draft has fewer tokens than its target: in longer texts it proposes nothing, or "
        "what the target rejects",
        std::move(cure));
  }

  // What only the draft's own file tells.
  void say_unseen_draft(const std::string& draft) {
    const std::int64_t target = asked_ > 0 ? asked_ : std::max(told_.context, reach(told_));
    say("draft_unseen", Severity::note, "", printable(draft, 60),
        "the draft's own config.json says how far it reaches: many EAGLE heads are made for 2,048 "
        "tokens, and beyond its max_position_embeddings there are no positions for it, of the " +
            grouped(target) + " here",
        "give it as well: posenc doctor TARGET DRAFT LINE");
  }

  // vLLM gives a dict of overrides to the target alone (vllm#58080).
  Expected<void> draft_of_vllm(const CommandFlag& flag) {
    POSENC_TRY(json, parse_json(flag.value, flag.name));
    const Json* method = json.find("method");
    const std::string* word = method ? method->get<std::string>() : nullptr;
    if (word && (*word == "ngram" || *word == "suffix")) return {};  // no model drafts
    const std::int64_t target = asked_ > 0 ? asked_ : std::max(told_.context, reach(told_));
    const Json* own = json.find("max_model_len");
    const std::int64_t* own_length = own ? own->get<std::int64_t>() : nullptr;
    const bool of_file = !json.find("model");  // MTP's layers are the target's own
    const std::int64_t draft = own_length ? *own_length : of_file ? file_.context : 0;
    if (line_.find("--hf-overrides"))
      say("draft_overrides", Severity::warning, "", word ? printable(*word, 60) : "a draft",
          "vLLM gives --hf-overrides to the target alone: the draft rotates as its own file says" +
              (draft > 0 && draft < target
                   ? ", for " + grouped(draft) + " tokens of the target's " + grouped(target)
                   : std::string()) +
              ", so its proposals come apart from the target in long texts (vllm#58080)",
          "write the scaling into the config.json of target and draft, and drop --hf-overrides");
    else if (draft > 0 && draft < target)
      say_shorter_draft(target, draft,
                        own_length ? "drop max_model_len of --speculative-config, or raise it: "
                                     "what the draft is made for, its own config.json says"
                                   : "write the scaling into the draft's config.json");
    const std::string* name = of_file ? nullptr : json.find("model")->get<std::string>();
    if (name && draft == 0) say_unseen_draft(*name);
    return {};
  }

  const Model &file_, &told_;
  const CommandLine& line_;
  std::string_view version_;  // of the engine; "": nobody tells it
  std::int64_t asked_;
  std::vector<Finding>& findings_;
};

}  // namespace

bool names_a_draft(const CommandLine& line) {
  for (const char* name :
       {"--model-draft", "--speculative-draft-model-path", "--speculative-model"})
    if (line.find(name)) return true;
  const CommandFlag* flag = line.find("--speculative-config");
  if (!flag) return false;
  const auto json = parse_json(flag->value, flag->name);
  return json && json->find("model");
}

Expected<std::int64_t> tokens_of_a_request(const Model& file, const Model& told,
                                           const CommandLine& line, std::string_view version,
                                           std::int64_t asked, std::vector<Finding>& findings) {
  return Request(file, told, line, version, asked, findings).tokens();
}

Finding served_shorter(const Model& model, std::string_view command, std::int64_t served,
                       std::int64_t wanted) {
  struct Flag {
    std::string_view engine, told;
  };
  constexpr Flag flags[] = {
      {"llama.cpp", "-c "},   {"vllm", "--max-model-len "},   {"sglang", "--context-length "},
      {"ollama", "num_ctx "}, {"tgi", "--max-total-tokens "}, {"lmdeploy", "--session-len "}};
  const auto line = read_command_line(command);
  const CommandFlag* count = line ? line->find("--parallel") : nullptr;
  double slots = count && !line->find("--kv-unified") ? number_of_flag(*count).value_or(1) : 1;
  if (line && line->engine == "ollama") slots = 1;  // num_ctx is of one request
  const bool shares = slots > 1 && slots < 1e6;
  const auto* flag = std::ranges::find(flags, line ? line->engine : "", &Flag::engine);
  const std::int64_t needed = shares ? wanted * std::llround(slots) : wanted;
  std::string cure = flag == std::end(flags) ? "a length of " + std::to_string(needed)
                                             : std::string(flag->told) + std::to_string(needed);
  if (shares) cure += ", or --kv-unified, by which one slot may have all that -c has";
  const std::int64_t reached = std::max(model.context, reach(model));
  if (reached > 0 && reached < wanted) cure += "; the model's own files end at " + grouped(reached);
  return {.code = "context_shorter",
          .severity = Severity::warning,
          .expected = grouped(wanted),
          .found = grouped(served),
          .message = (shares ? "each of " + std::to_string(std::llround(slots)) + " slots has "
                             : "the line serves ") +
                     grouped(served) +
                     " tokens, fewer than are asked about: a longer text is refused, or loses its "
                     "beginning",
          .cure = std::move(cure)};
}

std::optional<Finding> few_tokens(const CommandLine& line, double tokens) {
  constexpr double enough = 2048;
  constexpr std::string_view talks[] = {"llama-server", "llama-cli", "lms", "llamafile"};
  if (tokens < 1 || tokens >= enough ||
      std::ranges::find(talks, std::string_view(line.program)) == std::end(talks))
    return std::nullopt;
  const std::string told = grouped(std::llround(tokens));
  return Finding{
      .code = "context_shorter",
      .severity = Severity::warning,
      .found = told,
      .message = "prompt and answer have " + told +
                 " tokens together: a model that thinks writes more than that, and where "
                 "the context is full the oldest tokens are dropped (it forgets, and "
                 "repeats itself), or the answer ends",
      .cure =
          "-c of the longest prompt and answer together, 8192 or more where a model "
          "thinks; -c 0 takes the file's own"};
}

}  // namespace posenc::detail
