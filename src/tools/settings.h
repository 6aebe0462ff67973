// The settings of a program as keys with the way to each: YAML, TOML, or the JSON of a line a key.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::detail {

struct Setting {
  std::string path;  // "policy.hf_config_overrides.rope_scaling.factor"
  std::string value;

  std::string_view key() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  // "rope_scaling" of …rope_scaling.factor; "" where the key stands alone.
  std::string_view parent() const;
};

// Lists, anchors and texts of several lines are passed over: no setting of position is one.
class Settings {
 public:
  explicit Settings(std::string_view text);

  std::span<const Setting> all() const { return all_; }
  // The last of that name at the top, or (deep) wherever it stands. Nothing: none, or null.
  const std::string* find(std::string_view key, bool deep = false) const;

 private:
  struct Open {
    std::size_t indent;
    std::string path;
  };

  void line(std::string_view text);
  void flow(const std::string& path, std::string_view text);

  std::vector<Setting> all_;
  std::vector<Open> open_;
  bool toml_ = false;
};

}  // namespace posenc::detail
