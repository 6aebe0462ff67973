#include "src/tools/roles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "posenc/explain.h"
#include "src/core/small_letters.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/text/json.h"
#include "src/text/json_writer.h"
#include "src/tools/command_line.h"
#include "src/tools/told_rope.h"

namespace posenc::detail {
namespace by_name {
namespace {

constexpr std::size_t largest_settings = std::size_t{1} << 20, longest_name = 64,
                      longest_line = 400, most_settings = 64;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// The words of a name, small: "maxSeqLen", "max_seq_len" and "MAX-SEQ-LEN" are one.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool begins = is_upper(c) && i > 0 && !is_upper(name[i - 1]);
    if ((!is_letter(c) && !is_digit(c)) || begins) words.emplace_back();
    if (is_letter(c) || is_digit(c)) words.back() += small_letter(c);
  }
  std::erase(words, "");
  return words;
}

class Name {
 public:
  explicit Name(std::string_view name) : words_(words_of(name)) {}

  bool has(std::string_view any_of) const {
    return std::ranges::any_of(words_, [&](const std::string& word) {
      std::string_view rest = any_of;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        if (rest.substr(0, end) == word) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      return false;
    });
  }
  std::size_t count() const { return words_.size(); }

 private:
  std::vector<std::string> words_;
};

constexpr std::string_view
    of_rotation = "rope rotary yarn ntk longrope rot freq frequency",
    of_texts = "ctx context seq sequence seqlen position positions model",
    of_sizes = "len length size window max tokens num n limit embeddings seqlen",
    in_one =
        "nctx numctx ctxsize ctxlen contextsize contextlength contextlen contextwindow "
        "maxseqlen maxmodellen maxcontextlength maxcontextlen seqlen maxctx",
    // Lengths of something else: of an answer, a batch, a picture, a file.
    of_others =
        "new batch batches micro batched ubatch output response answer completion generate "
        "generation gen prefill chunk chunked chunks min draft overlap hidden vocab stride "
        "keep reserve reserved image images frame frames file path name log lora gpu cpu "
        "tensor pipeline parallel data dim head heads layer layers sliding local word id "
        "ids file files steps epochs requests seqs concurrent summary rerank embed shift "
        "checkpoint checkpoints buffer",
    no_factor =
        "attn attention mscale ext beta low high short long partial fraction pct percent "
        "dim channels fast slow";

// "131072", "131_072", "128k", "1e6"; nothing: no number alone.
std::optional<double> number_of(std::string_view value) {
  std::string digits;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const bool groups = (value[i] == '_' || value[i] == ',') && i > 0 && is_digit(value[i - 1]) &&
                        i + 3 < value.size() && is_digit(value[i + 1]) && is_digit(value[i + 2]) &&
                        is_digit(value[i + 3]);
    if (!groups) digits += value[i];
  }
  double times = 1;
  if (digits.size() > 1 && is_digit(digits[digits.size() - 2])) {
    const char end = digits.back();
    times = end == 'k' || end == 'K' ? 1024 : end == 'm' || end == 'M' ? 1024 * 1024 : 1;
    if (times > 1) digits.pop_back();
  }
  const auto json = parse_json(digits, "setting");
  if (!json) return std::nullopt;
  const auto number = real_number(*json);
  return number ? std::optional(*number * times) : std::nullopt;
}

bool fits(Role role, double number) {
  switch (role) {
    case Role::length:
    case Role::original: return number >= 128 && number <= 1e9 && number == std::floor(number);
    case Role::base: return number >= 100 && number <= 1e12;
    case Role::factor: return number >= 1 && number <= 1024;
    case Role::share: return number > 0 && number <= 1;
    case Role::alpha: return number >= 1 && number <= 1e4;
    case Role::type: return false;
  }
  return false;
}

bool is_scaling_word(std::string_view word) {
  constexpr std::string_view known[] = {"linear", "yarn", "dynamic", "ntk", "llama3", "longrope"};
  return std::ranges::find(known, word) != std::end(known);
}

// Reads names and the values behind them: `--name VALUE`, `name=VALUE`, `"name": VALUE`.
class Settings {
 public:
  explicit Settings(std::string_view text) : text_(text.substr(0, largest_settings)) {
    while (at_ < text_.size()) {
      if (is_letter(text_[at_]) && !is_inside())
        name();
      else
        ++at_;
    }
  }
  std::vector<RoleTold> take() && {
    if (of_llama3_ && !told_.empty())
      told_.push_back({.role = Role::type, .key = "low_freq_factor", .word = "llama3"});
    return std::move(told_);
  }

 private:
  bool is_inside() const {  // of a word that began before, or of a path
    if (at_ == 0) return false;
    const char before = text_[at_ - 1];
    return is_letter(before) || is_digit(before) || before == '_' || before == '/' ||
           before == '.' || before == '\\';
  }
  static bool is_of_name(char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
  }

  void name() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
    std::string_view path = text_.substr(start, at_ - start);
    const std::string_view name = path.substr(std::min(path.rfind('.') + 1, path.size()));
    if (name.size() > longest_name || told_.size() == most_settings) return;
    auto role = role_of(name);
    // apply_scaling() of Meta's code: its names say by themselves nothing of position.
    if (of_llama3_ && name == "scale_factor") role = Role::factor;
    if (of_llama3_ && name == "old_context_len") role = Role::original;
    if (at_ < scaling_ends_ && name == "factor") role = Role::factor;
    if (at_ < scaling_ends_ && (name == "type" || name == "rope_type")) role = Role::type;
    if (name == "rope_scaling" || name == "rope-scaling" || name == "rope_parameters") scaling();
    if (!role) return;
    // "# max_seq_len: 4096" says nothing.
    std::string_view before = text_.substr(0, start);
    before = before.substr(before.size() - std::min(before.size(), longest_line));
    before = before.substr(before.rfind('\n') + 1);  // all of it where there is none
    if (before.contains("# ") || before.starts_with('#') || before.contains("// ") ||
        before.starts_with("//"))
      return;
    const bool is_flag = before.ends_with("--");
    const auto value = value_behind(is_flag);
    if (!value) return;
    tell(*role, name, *value);
  }

  // {"type": "dynamic", "factor": 4}: whose keys say by themselves nothing of position.
  void scaling() {
    const std::size_t brace = text_.find_first_not_of(" \t=:'\"\\", at_);
    if (brace != text_.npos && text_[brace] == '{')
      scaling_ends_ = std::min(text_.find('}', brace), text_.size());
  }

  std::optional<std::string> value_behind(bool is_flag) {
    std::size_t at = at_;
    if (at < text_.size() && (text_[at] == '"' || text_[at] == '\'')) ++at;
    const auto skip_blanks = [&] {
      while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    };
    skip_blanks();
    if (at < text_.size() && (text_[at] == '=' || text_[at] == ':')) {
      ++at;
      skip_blanks();
    } else if (!is_flag || at == at_) {
      return std::nullopt;
    }
    if (at < text_.size() && (text_[at] == '"' || text_[at] == '\'')) ++at;
    const std::size_t start = at;
    while (at < text_.size() &&
           (is_of_name(text_[at]) || text_[at] == '+' ||
            (text_[at] == ',' && at + 1 < text_.size() && is_digit(text_[at + 1]) && at > start &&
             is_digit(text_[at - 1]))))
      ++at;
    if (at == start) return std::nullopt;
    at_ = at;
    return std::string(text_.substr(start, at - start));
  }

  void tell(Role role, std::string_view name, const std::string& value) {
    RoleTold one{.role = role, .key = printable(name, longest_name)};
    const auto number = number_of(value);
    if (!number) {
      const std::string word = small_letters(value);
      if (!is_scaling_word(word) || (role != Role::type && role != Role::factor)) return;
      one.role = Role::type;
      one.word = word;
    } else {
      if (role == Role::type) one.role = Role::factor;  // rope_scaling: 4
      if (one.role == Role::factor && *number > 0 && *number < 1) one.role = Role::share;
      one.number = *number;
      if (!fits(one.role, one.number)) return;
    }
    const auto same = [&](const RoleTold& old) {
      return old.role == one.role && old.number == one.number && old.word == one.word;
    };
    if (std::ranges::none_of(told_, same)) told_.push_back(std::move(one));
  }

  std::string_view text_;
  std::size_t at_ = 0, scaling_ends_ = 0;
  bool of_llama3_ = text_.contains("low_freq_factor") && text_.contains("high_freq_factor") &&
                    text_.contains("old_context_len");
  std::vector<RoleTold> told_;
};

const RoleTold* of(std::span<const RoleTold> roles, Role role) {
  const RoleTold* found = nullptr;
  for (const RoleTold& one : roles)
    if (one.role == role && (!found || one.number > found->number)) found = &one;
  return found;
}

bool is_said_once(std::span<const RoleTold> roles, Role role) {
  return std::ranges::count(roles, role, &RoleTold::role) == 1;
}

std::string said(const RoleTold& one) {
  return one.key + " " +
         (one.word.empty() ? one.role == Role::length || one.role == Role::original
                                 ? grouped(std::llround(one.number))
                                 : number_text(one.number)
                           : one.word);
}

// The rotation that the settings ask for, in place of the model's own.
class Told {
 public:
  Told(const Model& model, std::span<const RoleTold> roles)
      : model_(model), roles_(roles), runs_(model) {}

  std::vector<Finding> run() {
    for (const LayerGroup& group : model_.groups)
      if (const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group))
        if (!main_ || rope->rope_theta > main_->rope_theta) main_ = rope;
    if (const RoleTold* length = of(roles_, Role::length)) length_ = length->number;
    if (main_) put_in();
    of_rotation_told();
    of_length();
    of_original();
    return std::move(findings_);
  }

 private:
  double factor() const {
    if (const RoleTold* told = of(roles_, Role::factor); told && is_said_once(roles_, Role::factor))
      return told->number;
    if (const RoleTold* told = of(roles_, Role::share); told && is_said_once(roles_, Role::share))
      return 1 / told->number;
    // A word alone: trainers take as many contexts as the length fills.
    const bool by_length = of(roles_, Role::type) && !of(roles_, Role::factor) &&
                           !of(roles_, Role::share) && model_.context > 0;
    return by_length ? std::max(std::ceil(length_ / static_cast<double>(model_.context)), 1.0) : 1;
  }

  void put_in() {
    const RoleTold *base = of(roles_, Role::base), *alpha = of(roles_, Role::alpha),
                   *type = of(roles_, Role::type), *original = of(roles_, Role::original);
    for (LayerGroup& group : runs_.groups) {
      Rope* rope = is_tower(group.stack) ? nullptr : mutable_rope(group);
      // Layers of a base of their own are not those that a setting speaks of.
      if (!rope || rope->rope_theta != main_->rope_theta) continue;
      if (base && is_said_once(roles_, Role::base)) rope->rope_theta = base->number;
      if (alpha && is_said_once(roles_, Role::alpha) && group.geometry.head_dim > 2) {
        const auto d = static_cast<double>(group.geometry.head_dim);
        rope->rope_theta *= std::pow(alpha->number, d / (d - 2));
      }
      if (factor() == 1) continue;
      const std::string word = type && type->word != "ntk" ? type->word : "linear";
      JsonWriter json;
      json.object().member("rope_type", word).member("factor", factor());
      if (word == "yarn" || word == "llama3")
        json.member("original_max_position_embeddings",
                    original ? static_cast<std::int64_t>(original->number) : model_.context);
      if (word == "llama3") json.member("low_freq_factor", 1.0).member("high_freq_factor", 4.0);
      json.end();
      const auto dict = parse_json(json.text, "rope_scaling");
      std::vector<Finding> remarks;
      if (!dict || word == "longrope") continue;
      if (auto now = told_rope(*rope, *dict, {.context = model_.context}, remarks))
        *rope = *std::move(now);
    }
  }

  bool is_scaled() const { return main_ && !std::holds_alternative<Unscaled>(main_->scaling); }

  // Angles that the settings change: asked for where a longer text is, and a loss where none is.
  void of_rotation_told() {
    const auto differ = differences(model_, runs_, static_cast<std::int64_t>(length_));
    if (!differ) return;
    const bool longer = length_ > static_cast<double>(std::max(model_.context, reach(model_)));
    for (Finding finding : *differ) {
      const bool is_base = finding.code == "rope_theta";
      if (!is_base && finding.code != "rope_scaling" && finding.code != "rope_factors") continue;
      const RoleTold* base = of(roles_, Role::base);
      const bool smaller = is_base && base && base->number < main_->rope_theta;
      finding.message = std::string(as_settings_ask) + finding.message;
      if (smaller) {
        finding.severity = Severity::error;
        finding.cure = base->key + " " + number_text(main_->rope_theta) + ", or leave it out";
      } else if (const RoleTold* type = of(roles_, Role::type), *told = of(roles_, Role::factor);
                 type && told && is_scaled() && type->word == info(main_->scaling).name) {
        finding.severity = Severity::error;
        finding.cure = "all numbers of the file's scaling, in place of " + said(*told);
      } else if (is_scaled() && !is_base) {
        finding.severity = Severity::warning;
        finding.message +=
            "; the file has a scaling of its own, which this takes the place of, or "
            "comes on top of";
        finding.cure = "leave the scaling to the file";
      } else if (!longer) {
        finding.severity = Severity::warning;
        finding.message += "; texts within the " + grouped(model_.context) +
                           " tokens that the model is made for need none, and lose by it";
        finding.cure = "leave it out, unless the model was trained so";
      } else {
        finding.severity = Severity::note;
        finding.cure = "";
      }
      findings_.push_back(std::move(finding));
    }
  }

  void of_length() {
    const RoleTold* told = of(roles_, Role::length);
    if (!told || model_.context <= 0) return;
    const auto own = static_cast<double>(std::max(model_.context, reach(model_)));
    const double stretched =
        static_cast<double>(model_.context) * factor() * stretch_of_base(model_, runs_);
    const double made_for = std::max({own, stretched, static_cast<double>(reach(runs_))});
    if (length_ <= made_for) return;
    const std::string asked = std::to_string(std::llround(length_));
    const std::string most = std::to_string(std::llround(made_for));
    findings_.push_back(
        {.code = "beyond_context",
         .severity = Severity::warning,
         .position = std::llround(made_for),
         .expected = grouped(std::llround(made_for)),
         .found = grouped(std::llround(length_)),
         .message = told->key + " asks for more tokens than the model is made for" +
                    (made_for > own ? ", the scaling of these settings counted in"
                                    : ", and no scaling of these settings reaches so far") +
                    ": angles that training has not shown, and nonsense there",
         .cure = told->key + " " + most +
                 ", a model that is made for more, or a scaling: posenc extend MODEL --to " +
                 asked});
  }

  // The trained length of a scaling is the model's, and not that which is wanted.
  void of_original() {
    const RoleTold* told = of(roles_, Role::original);
    if (!told || model_.context <= 0) return;
    const double given = told->number;
    const Yarn* yarn = main_ ? std::get_if<Yarn>(&main_->scaling) : nullptr;
    const auto context = static_cast<double>(model_.context);
    const double own = yarn ? static_cast<double>(yarn->original_max_position_embeddings) : context;
    // A model may have been trained on less than its file promises, as Qwen 3.
    if (given <= std::max(own, context) && given > 0) return;
    findings_.push_back(
        {.code = "original_beyond",
         .severity = Severity::warning,
         .expected = grouped(std::llround(own)),
         .found = grouped(std::llround(given)),
         .message = told->key +
                    " is the length that was trained, and here it is more than the model is made "
                    "for: the scaling stretches too little, and too late",
         .cure = told->key + " " + std::to_string(std::llround(own))});
  }

  const Model& model_;
  std::span<const RoleTold> roles_;
  Model runs_;
  const Rope* main_ = nullptr;
  double length_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace
}  // namespace by_name

std::optional<Role> role_of(std::string_view name) {
  using namespace by_name;
  const Name words(name);
  if (words.count() == 0 || words.count() > 8) return std::nullopt;
  const bool rotates = words.has(of_rotation);
  if (words.has("orig original pretrained") &&
      words.has("ctx context seq len length max positions"))
    return Role::original;
  if (words.has("alpha") && (rotates || words.has("value"))) return Role::alpha;
  if (rotates && words.has("theta base") && !words.has("local swa sliding")) return Role::base;
  if (words.count() == 2 && words.has("compress") && words.has("pos")) return Role::factor;
  if (words.has("compress") && words.has("emb")) return Role::factor;
  if (words.has("freq frequency") && words.has("scale")) return Role::share;
  if (rotates && !words.has(no_factor) && !words.has("freq frequency")) {
    if (words.has("type method")) return Role::type;
    if (words.has("factor scale scaling ratio interpolation")) return Role::factor;
  }
  if (words.has("position") && words.has("interpolation") && words.has("factor scale"))
    return Role::factor;
  if (rotates || words.has(of_others)) return std::nullopt;
  if (words.has(in_one)) return Role::length;
  const bool alone = words.has("model position positions");
  if (words.has(of_texts) && words.has(of_sizes) && words.count() > 1 &&
      (!alone || (words.has("max") && words.has("len length embeddings ctx context seq tokens"))))
    return Role::length;
  return std::nullopt;
}

std::vector<RoleTold> roles_in(std::string_view text) { return by_name::Settings(text).take(); }

std::string roles_text(std::span<const RoleTold> roles) {
  constexpr std::size_t most = 4;
  std::string text;
  for (const RoleTold& one : roles.first(std::min(roles.size(), most)))
    text += (text.empty() ? "" : ", ") + by_name::said(one);
  return text + (roles.size() > most ? " …" : "");
}

std::vector<Finding> judge_roles(const Model* model, std::span<const RoleTold> roles) {
  if (model) return by_name::Told(*model, roles).run();
  using namespace by_name;
  // A length beyond what the settings' own scaling reaches.
  const RoleTold *length = of(roles, Role::length), *original = of(roles, Role::original),
                 *factor = of(roles, Role::factor);
  if (!length || !original || !factor || length->number <= original->number * factor->number)
    return {};
  return {{.code = "beyond_context",
           .severity = Severity::warning,
           .position = std::llround(original->number * factor->number),
           .expected = grouped(std::llround(original->number * factor->number)),
           .found = grouped(std::llround(length->number)),
           .message = said(*factor) + " of " + said(*original) +
                      " reaches no further, and more tokens are asked for",
           .cure = "a factor of " + number_text(std::ceil(length->number / original->number)) +
                   ", or fewer tokens"}};
}

}  // namespace posenc::detail
