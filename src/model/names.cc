// Meets names of models half-way.
#include "src/model/names.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <ranges>
#include <string_view>
#include <vector>

#include "src/core/small_letters.h"
#include "src/model/bundled.h"
#include "src/model/families/reading.h"
#include "src/model/gguf.h"

namespace posenc::detail {
namespace {

// Whether a part of a name says how the weights are packed: "q4_k_m", "iq4_xs", "4bit", "exl3".
bool is_packing(std::string_view part) {
  if (contains_word("json hf gguf awq gptq bf16 f16 fp16 f32 fp8 int8 int4 mlx ud bnb w4a16 w8a8 "
                    "nvfp4 mxfp4 qat marlin i1 imatrix dynamic quantized of",
                    part))
    return true;
  const auto digit_at = [&](std::size_t i) { return i < part.size() && is_digit(part[i]); };
  if ((part.starts_with("q") && digit_at(1)) || (part.starts_with("iq") && digit_at(2)) ||
      (part.starts_with("exl") && digit_at(3)))
    return true;
  const bool shard = part.size() == 5 && std::ranges::all_of(part, is_digit);  // 00001-of-00003
  // "4bit"; of Qwen3.5-35B-A3B-4bit what stands behind the dot is no packing.
  const std::string_view number =
      part.substr(0, part.size() - std::min<std::size_t>(part.size(), 3));
  return shard || (digit_at(0) && (part.ends_with("bit") || part.ends_with("bpw")) &&
                   number.find_first_not_of("0123456789._") == number.npos);
}

// Whether it says how the model was tuned, which seldom moves a position.
bool is_tuning(std::string_view part) { return contains_word("instruct chat it pt base", part); }

// Whether texts are at the same positions in both: so many tokens, the same windows and schemes.
bool place_texts_alike(const Model& a, const Model& b) {
  const auto of_text = [](const Model& model) {
    std::vector<const LayerGroup*> groups;
    for (const LayerGroup& group : model.groups)
      if (!is_tower(group.stack)) groups.push_back(&group);
    return groups;
  };
  return a.context == b.context &&
         std::ranges::equal(of_text(a), of_text(b),
                            [](const LayerGroup* one, const LayerGroup* other) {
                              return one->window == other->window && one->schemes == other->schemes;
                            });
}

// Letters, digits and the dots of numbers (opt-1.3b is not opt-13b; 3_1 is 3.1), without owner and
// packing, and where it is asked without tuning.
std::string plain(std::string_view name, bool tuned) {
  name = name.substr(name.find_last_of('/') + 1);
  std::string lower = small_letters(name);
  if (lower.ends_with(":latest")) lower.resize(lower.size() - std::string_view(":latest").size());
  // A dot stands before a packing, and within a number: llama-3.1-8b.Q4_K_M.gguf.
  for (std::size_t cut = lower.rfind('.'); cut != lower.npos && cut > 0; cut = lower.rfind('.')) {
    if (!is_packing(std::string_view(lower).substr(cut + 1))) break;
    lower.resize(cut);
  }
  if (lower.starts_with("meta-llama-")) lower.erase(0, 5);
  std::string out;
  for (const auto part : std::views::split(lower, '-')) {
    const std::string_view word(part);
    if (!out.empty() && (is_packing(word) || (!tuned && is_tuning(word)))) continue;
    for (std::size_t i = 0; i < word.size(); ++i) {
      const bool inside =
          i > 0 && i + 1 < word.size() && is_digit(word[i - 1]) && is_digit(word[i + 1]);
      if (is_digit(word[i]) || (word[i] >= 'a' && word[i] <= 'z')) out += word[i];
      if (inside && (word[i] == '.' || word[i] == '_')) out += '.';
    }
  }
  return out;
}

// Known names by their plain forms, of which the first stands. A log asks for each of its words.
using ByPlain = std::map<std::string, std::string_view, std::less<>>;
const ByPlain& by_plain(bool tuned) {
  const auto made = [](bool with_tuning) {
    ByPlain out;
    for (const std::string_view name : known_names()) out.emplace(plain(name, with_tuning), name);
    return out;
  };
  static const ByPlain whole = made(true), untuned = made(false);
  return tuned ? whole : untuned;
}

// Known names that begin as this one does, or it as they do.
std::vector<std::string> begin_alike(const std::string& name) {
  std::vector<std::string> alike;
  const std::string asked = plain(name, false);
  if (asked.size() < 3) return alike;
  for (const auto& [own, known] : by_plain(true))
    if (own.starts_with(asked) || asked.starts_with(own)) alike.emplace_back(known);
  return alike;
}

// "7b", "1.5B", "8x7b", "distill": what makes another model of a name before it.
bool is_size(std::string_view word) {
  const std::string small = small_letters(word);
  return small.starts_with("distill") || (small.size() > 1 && is_digit(small.front()) &&
                                          (small.ends_with('b') || small.contains("b-")));
}

// What several models of one name have in common, as far as texts go: "llama-3.1" of 8, 70 and
// 405 billion. Nothing: their positions are not the same.
std::optional<std::string_view> shared_name(std::string_view name) {
  const std::string asked = plain(name, false);
  std::optional<std::string_view> first;
  std::optional<Model> model_of_first;
  std::size_t count = 0;
  constexpr std::size_t most = 12;
  for (auto at = by_plain(false).lower_bound(asked);
       at != by_plain(false).end() && at->first.starts_with(asked); ++at) {
    const char next = at->first.size() > asked.size() ? at->first[asked.size()] : ' ';
    // llama3.1 is not llama3, and a size stands behind a name: llama3.1 + 8b.
    if (next == '.' || !is_size(std::string_view(at->first).substr(asked.size()))) continue;
    auto model = read_bundled(at->second);
    if (!model || ++count > most) return std::nullopt;
    if (first && !place_texts_alike(*model_of_first, *model)) return std::nullopt;
    if (!first) first = at->second, model_of_first = *std::move(model);
  }
  return first;
}

// Whether what follows such a word is a model: a Modelfile's line, a flag, a key of settings.
bool names_a_model(std::string_view word) {
  return contains_word(
      "FROM run serve -m --model --model-path --model_path --model-dir -hf --hf "
      "--model_name_or_path model model: base_model base_model: model_name "
      "model_path model_name_or_path model_name_or_path:",
      word);
}

// Whether what follows is another model beside it: a draft, a projector, an adapter.
bool names_another(std::string_view word) {
  return word.contains("draft") || word.contains("speculative") || word == "-md" ||
         word == "-hfd" || word.contains("mmproj") || word.contains("lora") ||
         word.contains("tokenizer");
}

// owner/name, and no path.
bool is_owned(std::string_view word) {
  return std::ranges::count(word, '/') == 1 && word.front() != '/' && word.front() != '.' &&
         word.front() != '~';
}

// owner/name of an address of the Hub, as far as it stands in a word: of
// "//huggingface.co/owner/name/tree/main"; else the word.
std::string_view without_address(std::string_view word) {
  for (const std::string_view host : {"huggingface.co/", "hf.co/"}) {
    const std::size_t at = word.find(host);
    if (at == word.npos || (at > 0 && word[at - 1] != '/')) continue;
    const std::string_view path = word.substr(at + host.size());
    const std::size_t owner = path.find('/');
    if (contains_word("blog docs papers spaces datasets learn", path.substr(0, owner))) return word;
    return owner == path.npos ? path : path.substr(0, path.find('/', owner + 1));
  }
  return word;
}

// A word of a sentence, as names are made of them.
struct ProseWord {
  std::string text;
  bool joins = false;   // nothing but blanks stands between it and the one before
  bool is_tag = false;  // of Ollama's, behind a colon: a size
};

std::vector<ProseWord> words_in_prose(std::string_view text) {
  constexpr std::string_view between = " \t\r\n\"'`=,;:()[]{}!?*", around = ".-_";
  constexpr std::size_t most_words = 2000;
  const auto is_foreign = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  std::vector<ProseWord> words;
  bool goes_on = false;
  for (std::size_t at = 0, last = 0; at < text.size() && words.size() < most_words; last = at) {
    const std::size_t first = text.find_first_not_of(between, at);
    if (first == text.npos) break;
    at = std::min(text.find_first_of(between, first), text.size());
    // Chinese stands beside names without a blank.
    for (std::size_t n = first + 1; n < at; ++n)
      if (is_foreign(text[n]) != is_foreign(text[n - 1])) at = n;
    std::string word(without_address(text.substr(first, at - first)));
    const bool ends = word.size() > 1 && around.contains(word.back());
    while (word.size() > 1 && around.contains(word.back())) word.pop_back();
    const bool foreign = !word.empty() && is_foreign(word.front());
    // "Llama 3.2:3b", as Ollama writes a size.
    const bool is_tag = text.substr(last, first - last) == ":" && is_digit(text[first]) &&
                        word.find_first_of("bB") != word.npos;
    const bool blanks =
        is_tag || text.substr(last, first - last).find_first_not_of(' ') == text.npos;
    words.push_back({std::move(word), goes_on && blanks && !foreign, is_tag});
    goes_on = !foreign && !ends;
  }
  return words;
}

// The longest name that begins with a word, and how many words it has.
std::optional<Named> name_at(const std::vector<ProseWord>& words, std::size_t first,
                             std::size_t& count) {
  constexpr std::size_t longest = 5;
  count = 1;
  if (words[first].text.empty()) return std::nullopt;
  for (count = std::min(longest, words.size() - first); count > 0; --count) {
    // "it" behind a name is a word of the sentence.
    if (count > 1 && contains_word("it pt base chat", words[first + count - 1].text)) continue;
    std::string name = words[first].text;
    bool parted = false;  // by a sign, or by an owner, with whom a name begins
    for (std::size_t n = 1; n < count; ++n) {
      name += "-" + words[first + n].text;
      parted = parted || words[first + n].text.contains('/') || !words[first + n].joins;
    }
    if (parted) continue;
    const std::string_view next =
        first + count < words.size() ? std::string_view(words[first + count].text) : "";
    // "llama3 rope scaling" is a scaling.
    const bool of_scaling = contains_word("rope RoPE rope_scaling scaling style", next);
    if (of_scaling || is_size(next) || name.size() < 5 || name.size() > 80 ||
        !std::ranges::any_of(name, is_digit))
      continue;
    // Ollama's qwen2.5:14b is the one for chats.
    const bool of_ollama = count > 1 && words[first + count - 1].is_tag;
    auto known = of_ollama ? name_like(name + "-instruct") : std::nullopt;
    if (!known) known = name_like(name);
    // One word without a size names a family, whose releases have several lengths.
    const bool of_family = count == 1 && name.find_first_of("./-") == name.npos;
    if (const auto found = known || of_family ? known : shared_name(name))
      return Named{count > 1 || name.find_first_of("/-") == name.npos || name.starts_with('/')
                       ? std::string(*found)
                       : name,
                   std::string(*found)};
  }
  count = 1;
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> name_like(std::string_view name) {
  if (name.size() > 200) return std::nullopt;
  const auto find = [&](bool asked_tuned, bool own_tuned) -> std::optional<std::string_view> {
    const auto found = by_plain(own_tuned).find(plain(name, asked_tuned));
    return found == by_plain(own_tuned).end() ? std::nullopt : std::optional(found->second);
  };
  if (const auto exact = find(true, true)) return exact;
  if (const auto untuned = find(false, true)) return untuned;
  return find(false, false);
}

std::optional<Named> model_named_in(std::string_view text) {
  constexpr std::string_view between = " \t\r\n\"'=,;()[]{}";
  std::string_view before;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = text.find_first_not_of(between, at);
    if (first == text.npos) break;
    const std::size_t end = std::min(text.find_first_of(between, first), text.size());
    std::string word(text.substr(first, end - first));
    const bool follows = names_a_model(before), beside = names_another(before);
    const bool of_ollama = before == "FROM" || before == "run";
    before = text.substr(first, end - first);
    at = end;
    if (beside || word.size() > 200 || word.back() == '/' || word.contains("://")) continue;
    const bool in_folder = word.contains('/'), owned = is_owned(word);
    if (!in_folder && !follows && !word.ends_with(".gguf")) continue;
    // FROM qwen3:8b, which is the one for chats; -hf owner/name:Q4_K_M
    std::string asked = word;
    if (of_ollama)
      std::ranges::replace(asked, ':', '-');
    else
      asked = asked.substr(0, asked.find(':'));
    if (owned)
      if (const auto folder = hub_snapshot(asked)) return Named{word, *folder};
    if (of_ollama)
      if (const auto known = name_like(asked + "-instruct"))
        return Named{word, std::string(*known)};
    if (const auto known = name_like(asked)) return Named{word, std::string(*known)};
  }
  return std::nullopt;
}

std::vector<Named> models_in_prose(std::string_view text, std::size_t most) {
  const std::vector<ProseWord> words = words_in_prose(text);
  std::vector<Named> found;
  for (std::size_t first = 0; first < words.size() && found.size() < most; ++first) {
    const std::string& word = words[first].text;
    // What another one is compared with is not the one that fails.
    if (first > 0 && contains_word("unlike Unlike than versus vs", words[first - 1].text)) continue;
    std::size_t count = 1;
    std::optional<Named> named = name_at(words, first, count);
    if (!named && word.contains('/'))
      if (const auto folder = hub_snapshot(word)) named = Named{word, *folder};
    if (named) {
      if (std::ranges::find(found, named->is, &Named::is) == found.end())
        found.push_back(*std::move(named));
      first += count - 1;
      continue;
    }
    // A model that nobody here knows is the one that is spoken of, whatever others follow.
    if (word.contains('-') && is_size(std::string_view(word).substr(word.rfind('-') + 1))) break;
  }
  return found;
}

std::optional<Named> model_in_prose(std::string_view text) {
  std::vector<Named> found = models_in_prose(text, 1);
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

std::string hub_name_in(std::string_view text) {
  constexpr std::string_view between = " \t\r\n\"'`=:,;()[]{}";
  constexpr std::array<std::string_view, 9> files = {".py",   ".yaml", ".yml", ".json",       ".sh",
                                                     ".gguf", ".txt",  ".log", ".safetensors"};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = text.find_first_not_of(between, at);
    if (first == text.npos) break;
    at = std::min(text.find_first_of(between, first), text.size());
    std::string_view word = without_address(text.substr(first, at - first));
    while (word.ends_with('.')) word.remove_suffix(1);
    const std::string_view name = word.substr(std::min(word.find('/') + 1, word.size()));
    const bool is_file =
        std::ranges::any_of(files, [&](std::string_view ending) { return word.ends_with(ending); });
    if (!word.empty() && is_owned(word) && is_letter(word.front()) && !is_file &&
        name.contains('-') && std::ranges::any_of(name, is_digit))
      return std::string(word);
  }
  return "";
}

std::string line_that_fetches(const std::string& name) {
  return "curl -sL https://huggingface.co/" + name + "/resolve/main/config.json | posenc doctor -";
}

std::string name_cure(const std::string& name) {
  if (name.starts_with("http://") || name.starts_with("https://")) {
    std::string address = name;
    if (const std::size_t at = address.find("/blob/"); at != address.npos)
      address.replace(at, 6, "/resolve/");
    if (!address.contains("/resolve/") && address.contains("huggingface.co/"))
      address += (address.ends_with('/') ? "" : "/") + std::string("resolve/main/config.json");
    return "posenc opens no address: curl -sL " + address + " | posenc doctor -";
  }
  std::string cure;
  const std::vector<std::string> alike = begin_alike(name);
  for (std::size_t i = 0; i < std::min<std::size_t>(alike.size(), 4); ++i)
    cure += (i == 0 ? "did you mean " : ", ") + alike[i];
  if (!cure.empty()) return cure + "? posenc models lists what is bundled";
  if (is_owned(name)) return "give its config.json: " + line_that_fetches(name);
  const std::string near = suggestion(name, known_names());  // else all of them
  return near.starts_with("did you mean") ? near
                                          : "give a path, or a name that posenc models lists";
}

std::string architecture_of(std::string_view family) {
  std::string name(family);
  if (name.ends_with("_text")) name.resize(name.size() - std::string_view("_text").size());
  std::string together = name, hyphened = name;
  std::erase(together, '_');
  std::ranges::replace(hyphened, '_', '-');
  for (const std::string& one : {together, hyphened, name})
    if (is_architecture(one)) return one;
  // Called otherwise: by one name alone, or by one that begins alike (deepseek2, not mistral4).
  std::vector<std::string_view> called, alike;
  const std::string_view letters = family.substr(0, family.find_first_of("_0123456789"));
  for (const Architecture& row : all_architectures())
    if (row.family == family)
      for (const auto word : std::views::split(row.names, ' '))
        called.emplace_back(word.begin(), word.end());
  std::ranges::copy_if(called, std::back_inserter(alike),
                       [&](std::string_view one) { return one.starts_with(letters); });
  return called.size() == 1  ? std::string(called.front())
         : alike.size() == 1 ? std::string(alike.front())
                             : "";
}

bool is_architecture(std::string_view name) { return find_architecture(name) != nullptr; }

}  // namespace posenc::detail
