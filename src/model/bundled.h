// The files of models/ and of its folders published/ and reconstructed/, made into string constants
// by the build, sorted by name. WebAssembly has none of the folders'.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace posenc::detail {

struct BundledFile {
  std::string_view name;  // without .json
  std::string_view text;
};

extern const BundledFile bundled_files[];
extern const std::size_t bundled_file_count;
extern const BundledFile published_files[];
extern const std::size_t published_file_count;
extern const BundledFile reconstructed_files[];
extern const std::size_t reconstructed_file_count;

// Of all, the bundled ones first.
std::vector<std::string_view> known_names();

Expected<Model> read_bundled(std::string_view name);

}  // namespace posenc::detail
