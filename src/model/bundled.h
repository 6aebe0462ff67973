// The files of models/, made into string constants by the build, sorted by name.
#pragma once

#include <cstddef>
#include <string_view>

#include "posenc/model.h"

namespace posenc::detail {

struct BundledFile {
  std::string_view name;  // without .json
  std::string_view text;
};

extern const BundledFile bundled_files[];
extern const std::size_t bundled_file_count;

Expected<Model> read_bundled(std::string_view name);

}  // namespace posenc::detail
