// Meets names of models half-way.
#include "cli/arguments/model_names.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "posenc/model.h"
#include "src/core/small_letters.h"

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

// Whether a part of a name says how the weights are packed: "q4_k_m", "iq4_xs", "4bit", "exl3".
bool is_packing(std::string_view part) {
  constexpr std::string_view words[] = {"json", "instruct", "chat", "it",   "hf",   "gguf", "awq",
                                        "gptq", "bf16",     "f16",  "fp16", "f32",  "fp8",  "int8",
                                        "int4", "mlx",      "ud",   "bnb",  "w4a16"};
  if (std::ranges::find(words, part) != std::end(words)) return true;
  const auto digit_at = [&](std::size_t i) {
    return i < part.size() && std::isdigit(static_cast<unsigned char>(part[i])) != 0;
  };
  if ((part.starts_with("q") && digit_at(1)) || (part.starts_with("iq") && digit_at(2)) ||
      (part.starts_with("exl") && digit_at(3)))
    return true;
  return digit_at(0) && (part.ends_with("bit") || part.ends_with("bpw"));
}

// Letters and digits alone, without owner and without what says how it was tuned or packed.
std::string plain(std::string_view name) {
  name = name.substr(name.find_last_of('/') + 1);
  std::string lower = detail::small_letters(name);
  if (lower.ends_with(":latest")) lower.resize(lower.size() - std::string_view(":latest").size());
  for (std::size_t cut = lower.find_last_of("-."); cut != lower.npos && cut > 0;
       cut = lower.find_last_of("-.")) {
    if (!is_packing(std::string_view(lower).substr(cut + 1))) break;
    lower.resize(cut);
  }
  if (lower.starts_with("meta-llama-")) lower.erase(0, 5);
  std::string out;
  for (const char c : lower)
    if (std::isalnum(static_cast<unsigned char>(c))) out += c;
  return out;
}

// Bundled names that begin as this one does, or it as they do.
std::vector<std::string> begin_alike(const std::string& name) {
  std::vector<std::string> alike;
  const std::string asked = plain(name);
  if (asked.size() < 3) return alike;
  for (const BundledModel& model : bundled_models()) {
    const std::string own = plain(model.name);
    if (own.starts_with(asked) || asked.starts_with(own)) alike.emplace_back(model.name);
  }
  return alike;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::optional<std::string> bundled_name_like(const std::string& name) {
  const std::string asked = plain(name);
  for (const BundledModel& model : bundled_models())
    if (plain(model.name) == asked) return std::string(model.name);
  return std::nullopt;
}

std::optional<std::string> hub_snapshot(const std::string& name) {
  if (std::ranges::count(name, '/') != 1 || name.contains("..") || name.starts_with('/'))
    return std::nullopt;
  std::string cache = environment("HF_HUB_CACHE");
  if (cache.empty() && !environment("HF_HOME").empty()) cache = environment("HF_HOME") + "/hub";
  if (cache.empty() && !environment("XDG_CACHE_HOME").empty())
    cache = environment("XDG_CACHE_HOME") + "/huggingface/hub";
  if (cache.empty() && !environment("HOME").empty())
    cache = environment("HOME") + "/.cache/huggingface/hub";
  if (cache.empty()) return std::nullopt;
  std::string folder = "models--" + name;
  folder.replace(folder.find('/'), 1, "--");
  std::error_code none;
  std::optional<std::string> newest;
  fs::file_time_type when{};
  for (const auto& entry : fs::directory_iterator(fs::path(cache) / folder / "snapshots", none)) {
    const auto written = entry.last_write_time(none);
    if (none || (newest && written < when)) continue;
    newest = entry.path().string();
    when = written;
  }
  return newest;
}

std::optional<Named> model_named_in(std::string_view text) {
  constexpr std::string_view between = " \t\r\n\"'=,;()[]{}";
  bool from = false;  // FROM qwen3:8b, ollama run qwen3:8b
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = text.find_first_not_of(between, at);
    if (first == text.npos) break;
    const std::size_t end = std::min(text.find_first_of(between, first), text.size());
    std::string word(text.substr(first, end - first));
    at = end;
    const bool follows = std::exchange(from, word == "FROM" || word == "run");
    if (word.size() > 200) continue;
    if (follows) std::ranges::replace(word, ':', '-');
    const bool owned = std::ranges::count(word, '/') == 1 && word.front() != '/' &&
                       word.front() != '.' && word.front() != '~' && word.back() != '/';
    const bool file = word.ends_with(".gguf");
    if (!owned && !follows && !file) continue;
    if (owned) word = word.substr(0, word.find(':'));  // -hf owner/name:Q4_K_M
    if (const auto folder = hub_snapshot(word)) return Named{word, *folder};
    if (const auto bundled = bundled_name_like(word)) return Named{word, *bundled};
  }
  return std::nullopt;
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
  if (std::ranges::count(name, '/') == 1 && !name.starts_with('/') && !name.starts_with('.'))
    return "give its config.json: curl -sL https://huggingface.co/" + name +
           "/resolve/main/config.json | posenc doctor -";
  return "give a path, or a name that posenc models lists";
}

}  // namespace posenc::cli
