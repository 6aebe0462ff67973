// The keys are written as a GGUF without tensors, which the reader of such files takes.
#include "src/tools/ollama_show.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "src/text/json.h"
#include "src/tools/recipes.h"

namespace posenc::detail {
namespace {

// Types of values, as GGUF numbers them.
constexpr std::uint32_t of_bool = 7, of_string = 8, of_array = 9, of_int64 = 11, of_float64 = 12;

class Gguf {
 public:
  // Nulls and texts in lists, such as a vocabulary, are left out.
  void member(const std::string& key, const Json& value) {
    std::string written;
    if (const auto* flag = value.get<bool>()) {
      put(written, of_bool);
      written += *flag ? '\1' : '\0';
    } else if (const auto* word = value.get<std::string>()) {
      put(written, of_string);
      text(written, *word);
    } else if (const auto* whole = value.get<std::int64_t>()) {
      put(written, of_int64);
      put(written, *whole);
    } else if (const auto* real = value.get<double>()) {
      put(written, of_float64);
      put(written, std::bit_cast<std::uint64_t>(*real));
    } else if (const auto* list = value.get<Json::Array>()) {
      if (!whole_numbers(written, *list)) return;
    } else {
      return;
    }
    text(keys_, key);
    keys_ += written;
    ++count_;
  }

  std::string bytes() const {
    std::string out = "GGUF";
    put(out, std::uint32_t{3});
    put(out, std::uint64_t{0});  // tensors
    put(out, count_);
    return out + keys_;
  }

 private:
  template <class T>
  static void put(std::string& to, T value) {
    const auto bytes = std::bit_cast<std::array<char, sizeof value>>(value);
    to.append(bytes.data(), bytes.size());
  }
  static void text(std::string& to, const std::string& word) {
    put(to, std::uint64_t{word.size()});
    to += word;
  }
  static bool whole_numbers(std::string& to, const Json::Array& list) {
    put(to, of_array);
    const bool flags = !list.empty() && list.front().get<bool>();
    put(to, flags ? of_bool : of_int64);
    put(to, std::uint64_t{list.size()});
    for (const Json& one : list) {
      const auto* flag = one.get<bool>();
      const auto* whole = one.get<std::int64_t>();
      if (flags != (flag != nullptr) || (!flag && !whole)) return false;
      if (flag)
        to += *flag ? '\1' : '\0';
      else
        put(to, *whole);
    }
    return true;
  }

  std::string keys_;
  std::uint64_t count_ = 0;
};

// A scaling that is a tensor of a GGUF is not in the answer: LongRoPE's lists, Llama 3.1's divisors.
void allow_for_tensors(Model& model) {
  const bool by_lists = std::erase_if(model.warnings, [](const Warning& one) {
                          return one.code == "gguf_missing_rope_factors";
                        }) > 0;
  const bool by_divisors = std::ranges::any_of(
      model.groups, [&](const LayerGroup& group) { return lacks_scaling_of_llama3(model, group); });
  if (!by_lists && !by_divisors) return;
  model.warnings.push_back(
      {"tensors_not_listed",
       "/api/show lists no tensors, and a scaling of this family is one of them "
       "(rope_freqs, rope_factors): whether the file has it is not told; give the GGUF "
       "that `ollama show --modelfile` names behind FROM"});
}

}  // namespace

std::optional<OllamaShow> ollama_show(std::string_view text, const std::string& name) {
  if (!text.starts_with('{') || !text.contains("\"model_info\"")) return std::nullopt;
  const auto json = parse_json(text, name);
  const Json* keys = json ? json->find("model_info") : nullptr;
  const auto* members = keys ? keys->get<Json::Object>() : nullptr;
  if (!members) return std::nullopt;
  Gguf gguf;
  for (const JsonMember& one : *members) gguf.member(one.key, one.value);
  const std::string bytes = gguf.bytes();
  auto model = read_model_bytes(std::as_bytes(std::span(bytes)), name);
  if (!model) return std::nullopt;
  allow_for_tensors(*model);
  OllamaShow out{*std::move(model)};
  if (const Json* file = json->find("modelfile"))
    if (const auto* said = file->get<std::string>()) out.modelfile = *said;
  return out;
}

}  // namespace posenc::detail
