#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "src/core/disk.h"

namespace posenc::detail {
namespace {

Entry entry_of(int failed, const struct stat& status) {
  if (failed != 0) return {EntryKind::missing, errno, errno == ELOOP, errno == ENOENT};
  if (S_ISREG(status.st_mode)) return {.kind = EntryKind::file};
  if (S_ISDIR(status.st_mode)) return {.kind = EntryKind::folder};
  return {.kind = S_ISLNK(status.st_mode) ? EntryKind::link : EntryKind::other};
}

}  // namespace

Entry look_at(const std::string& path) {
  struct stat status = {};
  return entry_of(lstat(path.c_str(), &status), status);
}

Entry look_through(const std::string& path) {
  struct stat status = {};
  return entry_of(stat(path.c_str(), &status), status);
}

Expected<std::vector<std::string>> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  if (!open) return fail(folder, "cannot be opened", std::strerror(errno), "check its permissions");
  std::vector<std::string> names;
  while (const dirent* entry = readdir(open.get())) names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

std::string words_of_error(int error) { return std::strerror(error); }

}  // namespace posenc::detail
