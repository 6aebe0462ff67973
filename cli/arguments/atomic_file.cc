#include "cli/arguments/atomic_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace posenc::cli {

Expected<void> write_whole(const std::string& path, std::initializer_list<std::string_view> parts) {
  std::error_code error;
  std::filesystem::path target = path;
  if (std::filesystem::is_symlink(target, error))
    target = std::filesystem::canonical(target, error);
  const auto status = std::filesystem::status(target, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return fail(path, "the output must be a regular file", "", "give a file name");

  const auto failure = [&path](int reason) {
    return fail(path, "cannot be written", std::strerror(reason));
  };
  const std::string beside = target.string() + ".tmp-" + std::to_string(getpid());
  std::FILE* file = std::fopen(beside.c_str(), "wbx");
  if (!file) return failure(errno);
  bool whole = true;
  for (const std::string_view part : parts)
    if (!part.empty())
      whole = whole && std::fwrite(part.data(), 1, part.size(), file) == part.size();
  int reason = whole ? 0 : errno;
  if (std::fclose(file) != 0 && whole) reason = errno;
  if (reason == 0 && std::rename(beside.c_str(), target.c_str()) == 0) return {};
  if (reason == 0) reason = errno;
  std::remove(beside.c_str());
  return failure(reason);
}

}  // namespace posenc::cli
