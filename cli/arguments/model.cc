// Reads a model from a file, or all of a pipe at once.
#include "cli/arguments/model.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace posenc::cli {
namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;

bool is_stream(const std::string& name) {
  return name == "-" || name == "/dev/stdin" || name.starts_with("/dev/fd/");
}

Expected<std::vector<char>> all_of(std::FILE* file, const std::string& name) {
  std::vector<char> bytes;
  char part[1 << 16];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file)) {
    bytes.insert(bytes.end(), part, part + count);
    if (bytes.size() > most_bytes)
      return fail(name, "a model through a pipe must be at most 64 MiB", "more",
                  "give the file's path");
  }
  if (std::ferror(file))
    return fail(name, "cannot be read", std::strerror(errno), "check the pipe");
  return bytes;
}

}  // namespace

Expected<Model> named_model(const std::string& name) {
  if (!is_stream(name)) return read_model(name);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(nullptr, std::fclose);
  if (name.starts_with("/dev/fd/")) {
    opened.reset(std::fopen(name.c_str(), "rb"));
    if (!opened)
      return fail(name, "cannot be opened", std::strerror(errno), "check the shell's redirection");
  }
  const Expected<std::vector<char>> bytes = all_of(opened ? opened.get() : stdin, name);
  if (!bytes) return std::unexpected(bytes.error());
  return read_model_bytes(std::as_bytes(std::span(*bytes)), "stdin");
}

}  // namespace posenc::cli
