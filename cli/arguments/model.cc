// Reads a model from a file, or all of a pipe at once.
#include "cli/arguments/model.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;

bool is_stream(const std::string& name) {
  return name == "-" || name == "/dev/stdin" || name.starts_with("/dev/fd/");
}

Expected<std::string> all_of(std::FILE* file, const std::string& name, std::size_t most,
                             std::string_view cure) {
  std::string bytes;
  char part[1 << 16];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file)) {
    bytes.append(part, count);
    if (bytes.size() > most)
      return fail(name, "must be at most " + std::to_string(most >> 20) + " MiB", "more", cure);
  }
  if (std::ferror(file))
    return fail(name, "cannot be read", std::strerror(errno), "check the file");
  return bytes;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// Nothing is opened for standard input.
Expected<File> opened(const std::string& name) {
  File file(nullptr, std::fclose);
  if (name == "-" || name == "/dev/stdin") return file;
  file.reset(std::fopen(name.c_str(), "rb"));
  if (!file) return fail(name, "cannot be opened", std::strerror(errno), "check the path");
  return file;
}

}  // namespace

Expected<Model> named_model(const std::string& name) {
  if (!is_stream(name)) return read_model(name);
  POSENC_TRY(file, opened(name));
  POSENC_TRY(bytes, all_of(file ? file.get() : stdin, name, most_bytes, "give the file's path"));
  return read_model_bytes(std::as_bytes(std::span(bytes)), "stdin");
}

Expected<std::string> named_text(const std::string& name, std::size_t most) {
  POSENC_TRY(file, opened(name));
  return all_of(file ? file.get() : stdin, name, most, "give its first lines: head -n 2000 FILE");
}

}  // namespace posenc::cli
