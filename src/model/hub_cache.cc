// The local cache of the Hugging Face hub, as huggingface_hub lays it out.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "src/model/names.h"

namespace posenc::detail {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

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

}  // namespace posenc::detail
