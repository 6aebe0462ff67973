// What one request of a server reaches: the context is shared among slots, self-extend stretches
// distances, a linear scaling is capped, and a draft has a length of its own.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/command_line.h"
#include "src/tools/told_rope.h"

namespace posenc::detail {
namespace {

class Request {
 public:
  Request(const Model& file, const Model& told, const CommandLine& line, std::int64_t asked,
          std::vector<Finding>& findings)
      : file_(file), told_(told), line_(line), asked_(asked), findings_(findings) {}

  Expected<std::int64_t> tokens() {
    POSENC_CHECK(share_among_slots());
    POSENC_TRY(reached, made_for());
    POSENC_CHECK(draft());
    if (asked_ > reached && reached > 0)
      say("beyond_context", Severity::warning, grouped(reached), grouped(asked_),
          "the engine is started for more tokens than the model is made for",
          "posenc extend MODEL --to LENGTH plans a longer context");
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

  // A number of at least 1; `usual` where the flag is not there.
  Expected<std::int64_t> count(std::string_view name, std::int64_t usual) const {
    const CommandFlag* flag = line_.find(name);
    if (!flag || flag->value == "auto" || flag->value == "-1") return usual;
    POSENC_TRY(value, number_of_flag(*flag));
    if (value >= 0 && value == std::floor(value) && value <= 0x1p40)
      return value == 0 ? usual : static_cast<std::int64_t>(value);
    return fail("command", flag->name + " must be a whole number", flag->value, "write it as 4");
  }

  // llama.cpp shares -c among its slots, unless they share one cache.
  Expected<void> share_among_slots() {
    POSENC_TRY(slots, count("--parallel", 1));
    if (slots == 1 || line_.find("--kv-unified")) return {};
    const std::int64_t all = asked_ > 0 ? asked_ : file_.context;
    asked_ = all / slots;
    say("slots", Severity::note, grouped(all), grouped(asked_),
        "each of " + std::to_string(slots) + " slots has " + grouped(asked_) +
            " tokens: a longer prompt is refused, or loses its beginning",
        "-c " + std::to_string(all * slots) + " gives each slot " + grouped(all) +
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
    if (linear && (!before || before->factor != linear->factor) && file_.context > 0) {
      reached = std::max(
          reached, static_cast<std::int64_t>(static_cast<double>(file_.context) * linear->factor));
      if (line_.program.ends_with("llama-server") && asked_ > told_.context)
        say("context_capped", Severity::warning, grouped(asked_), grouped(told_.context),
            "llama-server caps a slot at the file's n_ctx_train, which a linear scaling does not "
            "lift (YaRN's flags do)",
            "add --override-kv ARCH.context_length=int:" + std::to_string(asked_) +
                ", ARCH as the file's general.architecture");
    }
    return self_extend(reached);
  }

  // (trained − width) · n + width: main.cpp of llama.cpp, 2401.01325.
  Expected<std::int64_t> self_extend(std::int64_t reached) {
    POSENC_TRY(n, count("--grp-attn-n", 1));
    POSENC_TRY(width, count("--grp-attn-w", 512));
    if (n == 1 || reached == 0) return reached;
    if (width % n != 0)
      return fail("command", "--grp-attn-w must be a multiple of --grp-attn-n",
                  std::to_string(width), "llama.cpp stops otherwise");
    if (width >= reached)
      return fail("command", "--grp-attn-w must be below the trained length", std::to_string(width),
                  "half of it is usual: " + std::to_string(reached / 2));
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

  Expected<void> draft() {
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
      say("draft_overrides", Severity::warning, "", word ? *word : "a draft",
          "vLLM gives --hf-overrides to the target alone: the draft rotates as its own file says" +
              (draft > 0 && draft < target
                   ? ", for " + grouped(draft) + " tokens of the target's " + grouped(target)
                   : std::string()) +
              ", so its proposals come apart from the target in long texts (vllm#58080)",
          "write the scaling into the config.json of target and draft, and drop --hf-overrides");
    else if (draft > 0 && draft < target)
      say_shorter_draft(target, draft, "write the scaling into the draft's config.json");
    return {};
  }

  const Model &file_, &told_;
  const CommandLine& line_;
  std::int64_t asked_;
  std::vector<Finding>& findings_;
};

}  // namespace

Expected<std::int64_t> tokens_of_a_request(const Model& file, const Model& told,
                                           const CommandLine& line, std::int64_t asked,
                                           std::vector<Finding>& findings) {
  return Request(file, told, line, asked, findings).tokens();
}

}  // namespace posenc::detail
