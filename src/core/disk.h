// What paths lead to, and what folders hold, on POSIX and on Windows. Paths are UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"

namespace posenc::detail {

// What parts names of a path: elsewhere than on Windows a name may hold a backslash.
#ifdef _WIN32
inline constexpr std::string_view separators = "/\\";
#else
inline constexpr std::string_view separators = "/";
#endif

enum class EntryKind { missing, file, folder, link, other };

struct Entry {
  EntryKind kind = EntryKind::missing;
  int error = 0;         // why it is missing: the system's number, for words_of_error
  bool circle = false;   // links that lead to each other
  bool nothing = false;  // there is no such name
};

// The name itself, which may be a link, and what it leads to.
Entry look_at(const std::string& path);
Entry look_through(const std::string& path);

// The names in a folder, sorted. Error: it cannot be opened.
Expected<std::vector<std::string>> names_in(const std::string& folder);

std::string words_of_error(int error);

}  // namespace posenc::detail
