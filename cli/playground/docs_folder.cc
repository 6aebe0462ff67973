#include "cli/playground/docs_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

// Tells an old copy from a new one, and guards nothing.
std::string hash_of(std::string_view bytes) {
  return fmt::format("{:016x}", std::hash<std::string_view>{}(bytes));
}

}  // namespace

Expected<DocsFolder> DocsFolder::read(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(folder / "index.html", error))
    return fail("serve", "--docs must be a folder with an index.html", folder.string(),
                "make docs-site makes one in build/docs-site");
  std::uintmax_t bytes = 0;
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    if (each->is_symlink(error) || !each->is_regular_file(error)) continue;
    bytes += each->file_size(error);
    found.push_back(each->path());
    if (error) break;
    if (found.size() > most_files || bytes > most_bytes)
      return fail(
          "serve",
          fmt::format("--docs must have at most {} files and {} MiB", most_files, most_bytes >> 20),
          folder.string(), "name the folder of the site itself");
  }
  if (error) return fail("serve", "--docs could not be read", folder.string(), error.message());
  std::ranges::sort(found);

  DocsFolder docs;
  for (const fs::path& path : found) {
    std::ifstream in(path, std::ios::binary);
    Page page{"/docs/" + path.lexically_relative(folder).generic_string(),
              "",
              {std::istreambuf_iterator<char>(in), {}}};
    if (!in) return fail("serve", "--docs could not be read", path.string(), "look at its rights");
    page.hash = hash_of(page.bytes);
    docs.pages_.push_back(std::move(page));
  }
  for (const Page& page : docs.pages_) {
    const char* const begin = page.bytes.data();
    docs.files_.push_back({page.path, page.hash, {begin, begin + page.bytes.size()}, {}});
  }
  return docs;
}

}  // namespace posenc::cli
