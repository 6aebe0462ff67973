// A site of documents on the disk (`make docs-site`), as files of `posenc serve`.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/playground/site.h"
#include "posenc/error.h"

namespace posenc::cli {

// Read whole, once, before any request comes: a request is compared with the names that were found
// then, and never becomes a path.
class DocsFolder {
 public:
  static constexpr std::size_t most_files = 8192;
  static constexpr std::uintmax_t most_bytes = std::uintmax_t{256} << 20;

  DocsFolder() = default;  // without a file
  DocsFolder(DocsFolder&&) = default;
  DocsFolder& operator=(DocsFolder&&) = default;

  // Every file below the folder, as /docs/NAME. Links are not followed. Errors: no index.html in
  // it; more than the bounds; a file that cannot be read.
  static Expected<DocsFolder> read(const std::filesystem::path& folder);

  std::span<const SiteFile> files() const { return files_; }

 private:
  struct Page {
    std::string path, hash, bytes;
  };
  std::deque<Page> pages_;  // where they are, they stay: files_ looks at them
  std::vector<SiteFile> files_;
};

}  // namespace posenc::cli
