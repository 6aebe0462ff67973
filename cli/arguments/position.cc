#include "cli/arguments/position.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/arguments/model.h"
#include "src/core/try.h"

namespace posenc::cli {

Expected<std::optional<PositionFile>> named_position(const std::string& name) {
  constexpr std::size_t most = std::size_t{64} << 20;
  std::error_code none;
  if (!std::filesystem::is_regular_file(name, none)) return std::nullopt;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name.c_str(), "rb"),
                                                             std::fclose);
  std::array<char, 256> start{};
  const std::size_t read = file ? std::fread(start.data(), 1, start.size(), file.get()) : 0;
  if (!is_position({start.data(), read})) return std::nullopt;
  POSENC_TRY(text, named_text(name, most));
  POSENC_TRY(position, read_position(text, name));
  return std::move(position);
}

Expected<PositionFile> position_of_any(const std::string& name, std::int64_t length) {
  POSENC_TRY(position, named_position(name));
  if (position) return std::move(*position);
  POSENC_TRY(model, named_model(name));
  POSENC_TRY(explanation, explain(std::move(model), {.at = length}));
  return position_of(explanation);
}

}  // namespace posenc::cli
