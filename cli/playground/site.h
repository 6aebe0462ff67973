// The playground's files within the command, each as it is and compressed.
#pragma once

#include <span>
#include <string_view>

namespace posenc::cli {

struct SiteBytes {
  const char *begin, *end;
  std::string_view text() const { return {begin, end}; }
};

struct SiteFile {
  std::string_view path;  // "/index.html"
  std::string_view hash;  // of the bytes, 16 digits
  SiteBytes plain, gzip;  // gzip: empty where it is not kept
};

std::span<const SiteFile> site();

}  // namespace posenc::cli
