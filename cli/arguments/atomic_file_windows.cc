// Writes a file beside the one that it will replace, and renames it when it is whole.
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <cstdio>

#include "cli/arguments/atomic_file.h"
#include "src/core/disk.h"
#include "src/core/wide.h"

namespace posenc::cli {
namespace {

bool write_all(HANDLE file, std::string_view bytes) {
  while (!bytes.empty()) {
    const DWORD most = static_cast<DWORD>(std::min<std::size_t>(bytes.size(), 1u << 30));
    DWORD count = 0;
    if (!WriteFile(file, bytes.data(), most, &count, nullptr)) return false;
    bytes.remove_prefix(count);
  }
  return true;
}

}  // namespace

Expected<void> write_whole(const std::string& path, std::initializer_list<std::string_view> parts) {
  const detail::EntryKind there = detail::look_through(path).kind;
  if (there != detail::EntryKind::missing && there != detail::EntryKind::file)
    return fail(path, "the output must be a regular file", "", "give a file name");
  const std::wstring target = detail::wide(path);
  const std::size_t name = target.find_last_of(L"/\\:");
  wchar_t own[48];
  std::swprintf(own, 48, L".posenc-%lu", static_cast<unsigned long>(GetCurrentProcessId()));
  const std::wstring unfinished = target.substr(0, name == target.npos ? 0 : name + 1) + own;
  const auto failure = [&] {
    return fail(path, "cannot be written",
                detail::words_of_error(static_cast<int>(GetLastError())));
  };

  const HANDLE file = CreateFileW(unfinished.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS,
                                  FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return failure();
  bool good = true;
  for (const std::string_view part : parts) good = good && write_all(file, part);
  std::unexpected<Error> lost = failure();
  good = CloseHandle(file) && good;
  if (good && MoveFileExW(unfinished.c_str(), target.c_str(), MOVEFILE_REPLACE_EXISTING)) return {};
  if (good) lost = failure();
  DeleteFileW(unfinished.c_str());
  return lost;
}

}  // namespace posenc::cli
