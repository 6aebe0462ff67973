// Flags of llama.cpp's programs and keys that --override-kv sets: flags stand above keys, and those
// above the file.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/try.h"
#include "src/model/compare.h"
#include "src/tools/command_line.h"
#include "src/tools/told_rope.h"

namespace posenc::detail {
namespace {

// What flags and --override-kv say, the flags first. llama-context.cpp decides in the same order.
struct LlamaTold {
  std::optional<double> base, factor, ext, attn, fast, slow, attn_key;
  std::optional<std::int64_t> original, rotary_dim, context;
  std::optional<double> base_swa;
  std::string type;
  bool any() const {
    return base || factor || ext || attn || fast || slow || attn_key || original || !type.empty();
  }
};

struct KeyName {
  std::string_view name, type;
};
constexpr KeyName key_names[] = {{"rope.freq_base", "float"},
                                 {"rope.freq_base_swa", "float"},
                                 {"rope.dimension_count", "int"},
                                 {"rope.scaling.type", "str"},
                                 {"rope.scaling.factor", "float"},
                                 {"rope.scaling.original_context_length", "int"},
                                 {"rope.scaling.attn_factor", "float"},
                                 {"rope.scaling.finetuned", "bool"},
                                 {"context_length", "int"}};

class LlamaFlags {
 public:
  explicit LlamaFlags(const CommandLine& line) : line_(line) {}

  Expected<LlamaTold> read() {
    for (const CommandFlag& flag : line_.flags)
      if (flag.name == "--override-kv") POSENC_CHECK(read_keys(flag.value));
    if (const CommandFlag* type = line_.find("--rope-scaling"))
      POSENC_CHECK(read_type(type->value));
    POSENC_CHECK(positive("--rope-freq-base", told_.base));
    POSENC_CHECK(positive("--rope-scale", told_.factor));
    if (line_.find("--rope-freq-scale")) {
      std::optional<double> scale;
      POSENC_CHECK(positive("--rope-freq-scale", scale));
      if (scale) told_.factor = 1 / *scale;
    }
    POSENC_CHECK(number("--yarn-ext-factor", told_.ext));
    POSENC_CHECK(number("--yarn-attn-factor", told_.attn));
    POSENC_CHECK(positive("--yarn-beta-fast", told_.fast));
    POSENC_CHECK(positive("--yarn-beta-slow", told_.slow));
    std::optional<double> original;
    POSENC_CHECK(positive("--yarn-orig-ctx", original));
    if (original) told_.original = std::llround(*original);
    if (told_.ext && *told_.ext < 0) told_.ext.reset();  // −1 stands for "not set"
    if (told_.attn && *told_.attn < 0) told_.attn.reset();
    return std::move(told_);
  }

 private:
  Expected<void> number(std::string_view name, std::optional<double>& out) {
    const CommandFlag* flag = line_.find(name);
    if (!flag) return {};
    POSENC_TRY(value, number_of_flag(*flag));
    out = value;
    return {};
  }

  // 0 (and −1 of the betas) stands for the file's own.
  Expected<void> positive(std::string_view name, std::optional<double>& out) {
    std::optional<double> value;
    POSENC_CHECK(number(name, value));
    if (!value || *value == 0 || (*value == -1 && name.starts_with("--yarn-beta"))) return {};
    if (*value < 0)
      return fail("command", std::string(name) + " must be 0 or more", number_text(*value),
                  "drop the flag: the file's own then counts");
    out = value;
    return {};
  }

  Expected<void> read_type(std::string_view word) {
    constexpr std::string_view types[] = {"none", "linear", "yarn"};
    if (std::ranges::find(types, word) == std::end(types))
      return fail("command", "--rope-scaling must be none, linear or yarn", word,
                  "other scalings are tensors of the file, which the converter writes");
    told_.type = word;
    return {};
  }

  // KEY=VALUE with the type that it lacks.
  static std::string with_type(std::string_view one) {
    const std::size_t equals = one.find('=');
    const bool is_number = equals != one.npos && equals + 1 < one.size() &&
                           one.find_first_not_of("0123456789.", equals + 1) == one.npos;
    if (!is_number) return "write llama.rope.freq_base=float:1000000";
    const std::string_view key = one.substr(0, equals), value = one.substr(equals + 1);
    const bool is_real = value.contains('.') || key.ends_with("freq_base") ||
                         key.ends_with("factor") || key.ends_with("scale");
    return "write " + std::string(key) + (is_real ? "=float:" : "=int:") + std::string(value);
  }

  // "KEY=TYPE:VALUE", several behind commas.
  Expected<void> read_keys(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(','), text.size());
      const std::string_view one = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      const std::size_t equals = one.find('='), colon = one.find(':', equals);
      if (equals == one.npos || colon == one.npos)
        return fail("command", "--override-kv must be KEY=TYPE:VALUE", one, with_type(one));
      POSENC_CHECK(read_key(one.substr(0, equals), one.substr(equals + 1, colon - equals - 1),
                            one.substr(colon + 1)));
    }
    return {};
  }

  Expected<void> read_key(std::string_view key, std::string_view type, std::string_view value) {
    const std::string_view name = key.substr(std::min(key.find('.') + 1, key.size()));
    const auto* known = std::ranges::find(key_names, name, &KeyName::name);
    if (known == std::end(key_names)) {
      if (!name.starts_with("rope")) return {};
      std::vector<std::string_view> names;
      for (const KeyName& one : key_names) names.push_back(one.name);
      return fail("command", "a key about position must be one that the loader reads", key,
                  suggestion(name, names));
    }
    if (known->type != type)
      return fail("command", std::string(key) + " must have the type " + std::string(known->type),
                  type, "llama.cpp passes over an override of another type");
    if (known->type == "bool") return {};
    if (known->type == "str") return read_type(value);
    POSENC_TRY(number, number_of_flag({std::string(key), std::string(value)}));
    if (number <= 0 || (known->type == "int" && number != std::floor(number)))
      return fail("command", std::string(key) + " must be above 0", value, "drop the override");
    const std::int64_t whole = std::llround(number);
    if (name == "rope.freq_base") told_.base = number;
    if (name == "rope.freq_base_swa") told_.base_swa = number;
    if (name == "rope.dimension_count") told_.rotary_dim = whole;
    if (name == "rope.scaling.factor") told_.factor = number;
    if (name == "rope.scaling.original_context_length") told_.original = whole;
    if (name == "rope.scaling.attn_factor") told_.attn_key = number;
    if (name == "context_length") told_.context = whole;
    return {};
  }

  const CommandLine& line_;
  LlamaTold told_;
};

class LlamaRun {
 public:
  LlamaRun(Model& model, const LlamaTold& told, std::int64_t length, std::vector<Finding>& findings)
      : model_(model), told_(told), length_(length), findings_(findings) {}

  Expected<void> apply() {
    file_context_ = model_.context;
    if (told_.context) model_.context = *told_.context;
    const bool mixed = std::ranges::any_of(model_.groups, [](const LayerGroup& group) {
      return group.stack == Stack::text && !group.window;
    });
    for (LayerGroup& group : model_.groups) {
      Rope* rope = mutable_rope(group);
      if (!rope || is_tower(group.stack)) continue;
      if (told_.rotary_dim && !group.cache_note.contains("MLA"))
        rope->rotary_dim = told_.rotary_dim;
      // llama_model::get_rope_freq_base: flags are for layers that see everything.
      if (group.window && mixed) {
        if (told_.base_swa) rope->rope_theta = *told_.base_swa;
        if (told_.any())
          say("window_untouched", Severity::note, "",
              "layers with a window keep their own base and scale: flags do not reach them", "");
        continue;
      }
      if (told_.any()) POSENC_CHECK(put_in(group, *rope));
      POSENC_CHECK(compile(group, length_));
    }
    return {};
  }

 private:
  void say(std::string code, Severity severity, std::string_view found, std::string message,
           std::string cure) {
    Finding finding =
        line_finding(std::move(code), severity, found, std::move(message), std::move(cure));
    if (std::ranges::find(findings_, finding) == findings_.end())
      findings_.push_back(std::move(finding));
  }

  Expected<void> put_in(LayerGroup& group, Rope& rope) {
    const auto* yarn = std::get_if<Yarn>(&rope.scaling);
    const auto* linear = std::get_if<Linear>(&rope.scaling);
    const bool plain = yarn || linear || std::holds_alternative<Unscaled>(rope.scaling);
    const double own = yarn ? yarn->factor.value_or(1) : linear ? linear->factor : 1;
    const std::string type = !told_.type.empty() ? told_.type : yarn ? "yarn" : "linear";
    const double s = type == "none" ? 1 : told_.factor.value_or(own);
    const double ext = told_.ext.value_or(type == "yarn" ? 1 : 0);
    const bool same_base = !told_.base || *told_.base == rope.rope_theta;
    if (!plain && same_base && s == 1 && ext == 0) {  // tensors of the file, as they are
      if (told_.type == "none")
        say("flag_unread", Severity::note, "--rope-scaling none",
            "the factors are a tensor of the file, which llama.cpp takes whatever the type is: "
            "--rope-scaling none changes nothing",
            "");
      return {};
    }
    if (told_.type == "yarn" && s == 1 && !told_.factor &&
        std::holds_alternative<Unscaled>(rope.scaling))
      say("flag_unread", Severity::warning, "--rope-scaling yarn",
          "--rope-scaling yarn without --rope-scale scales by 1: nothing is stretched",
          "--rope-scale N beside it (4 of the model cards of Qwen)");
    if (ext != 0 && ext != 1)
      return fail("command", "--yarn-ext-factor must be 0, 1 or -1", number_text(ext),
                  "a part of YaRN's ramp is no scheme that posenc has");
    if (!plain) POSENC_CHECK(keep_divisors(group, rope));
    if (told_.base && *told_.base > 1) rope.rope_theta = *told_.base;
    if (ext == 0) return without_yarn(rope, s);
    return with_yarn(group, rope, yarn ? *yarn : Yarn{}, yarn != nullptr, s);
  }

  // rope_freqs.weight was made for the base of the file, and divides whatever flags make of the
  // frequencies.
  Expected<void> keep_divisors(const LayerGroup& group, Rope& rope) const {
    if (!std::holds_alternative<Llama3>(rope.scaling))
      return fail("command", "flags that scale must not meet this scaling",
                  scaling_text(rope.scaling),
                  "drop the flags: it is tensors of the file, and posenc has no scheme of both");
    LayerGroup plain = group;
    mutable_rope(plain)->scaling = Unscaled{};
    POSENC_TRY(scaled, compile(group));
    POSENC_TRY(unscaled, compile(plain));
    for (std::int64_t r = 0; r < scaled.rotate->pairs(); ++r)
      rope.frequency_factors.push_back(unscaled.rotate->at(0, 0, r) / scaled.rotate->at(0, 0, r));
    rope.scaling = Unscaled{};
    return {};
  }

  Expected<void> without_yarn(Rope& rope, double s) {
    for (const auto& [name, value] :
         {std::pair("--yarn-beta-fast", told_.fast), std::pair("--yarn-beta-slow", told_.slow),
          std::pair("--yarn-attn-factor", told_.attn)}) {
      if (!value || (name == std::string_view("--yarn-attn-factor") && *value == 1)) continue;
      if (name == std::string_view("--yarn-attn-factor"))
        return fail("command", "--yarn-attn-factor must be 1 without YaRN", number_text(*value),
                    "drop it, or write --rope-scaling yarn");
      say("flag_unread", Severity::warning, name, std::string(name) + " is for YaRN alone",
          "write --rope-scaling yarn, or drop it");
    }
    if (told_.type == "none" && told_.factor && *told_.factor != 1)
      say("flag_unread", Severity::warning, "--rope-scaling none",
          "--rope-scaling none switches every scaling off: --rope-scale and --rope-freq-scale "
          "beside it do nothing",
          "--rope-scaling yarn (linear for a model that was trained so), or drop both");
    if (told_.original && told_.type.empty())
      say("flag_unread", s == 1 ? Severity::warning : Severity::error, "--yarn-orig-ctx",
          "without --rope-scaling yarn " +
              (s == 1 ? std::string("nothing is scaled")
                      : "the scale is linear: every position is divided by " + number_text(s) +
                            ", in short texts too, which no model with YaRN was trained with") +
              "; --yarn-orig-ctx does nothing",
          "--rope-scaling yarn beside it");
    if (told_.attn_key && *told_.attn_key != 1)
      return fail("command", "rope.scaling.attn_factor must be 1 without YaRN",
                  number_text(*told_.attn_key), "drop it, or write --rope-scaling yarn");
    rope.scaling = s == 1 ? Scaling(Unscaled{}) : Scaling(Linear{.factor = s});
    return {};
  }

  Expected<void> with_yarn(const LayerGroup& group, Rope& rope, Yarn yarn, bool own, double s) {
    yarn.factor = s;
    yarn.dynamic = false;
    yarn.max_position_embeddings.reset();
    yarn.truncate = true;
    if (told_.fast) yarn.beta_fast = *told_.fast;
    if (told_.slow) yarn.beta_slow = *told_.slow;
    if (told_.original)
      yarn.original_max_position_embeddings = *told_.original;
    else if (!own)
      POSENC_CHECK(default_original(yarn));
    if (told_.attn)
      say("flag_unread", Severity::warning, "--yarn-attn-factor",
          "--yarn-attn-factor has no effect: llama.cpp computes the factor anew under YaRN",
          "--override-kv ARCH.rope.scaling.attn_factor=float:X multiplies YaRN's own");
    rope.scaling = yarn;
    if (!told_.attn_key) return {};
    POSENC_TRY(plan, compile(group, length_));
    std::get<Yarn>(rope.scaling).attention_factor = *told_.attn_key * plan.rotate->amplitude;
    return {};
  }

  Expected<void> default_original(Yarn& yarn) {
    if (model_.context <= 0)
      return fail("command", "YaRN must know the trained length", "none in the file",
                  "write --yarn-orig-ctx");
    yarn.original_max_position_embeddings = model_.context;
    if (model_.context > file_context_ && file_context_ > 0) {
      say("original_defaulted", Severity::warning, std::to_string(model_.context),
          "without --yarn-orig-ctx YaRN takes the overridden context for the trained length, so "
          "that pairs which training has shown in part are not stretched",
          "--yarn-orig-ctx " + std::to_string(file_context_));
      return {};
    }
    say("original_defaulted", Severity::note, std::to_string(model_.context),
        "without --yarn-orig-ctx the trained length is the file's context", "");
    return {};
  }

  Model& model_;
  const LlamaTold& told_;
  std::int64_t length_, file_context_ = 0;
  std::vector<Finding>& findings_;
};

}  // namespace

Expected<void> apply_llama_flags(Model& model, const CommandLine& line, std::int64_t length,
                                 std::vector<Finding>& findings) {
  POSENC_TRY(told, LlamaFlags(line).read());
  return LlamaRun(model, told, length, findings).apply();
}

}  // namespace posenc::detail
