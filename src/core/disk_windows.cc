#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <algorithm>

#include "src/core/disk.h"
#include "src/core/wide.h"

namespace posenc::detail {
namespace {

Entry missing() {
  const DWORD why = GetLastError();
  return {EntryKind::missing, static_cast<int>(why), why == ERROR_CANT_RESOLVE_FILENAME,
          why == ERROR_FILE_NOT_FOUND || why == ERROR_PATH_NOT_FOUND};
}

Entry entry_of(DWORD attributes) {
  if (attributes & FILE_ATTRIBUTE_DIRECTORY) return {.kind = EntryKind::folder};
  if (attributes & FILE_ATTRIBUTE_DEVICE) return {.kind = EntryKind::other};
  return {.kind = EntryKind::file};
}

}  // namespace

std::wstring wide(std::string_view utf8) {
  const int size = static_cast<int>(utf8.size());
  std::wstring out(
      static_cast<std::size_t>(MultiByteToWideChar(CP_UTF8, 0, utf8.data(), size, nullptr, 0)),
      L'\0');
  MultiByteToWideChar(CP_UTF8, 0, utf8.data(), size, out.data(), static_cast<int>(out.size()));
  return out;
}

std::string narrow(std::wstring_view utf16) {
  const int size = static_cast<int>(utf16.size());
  std::string out(static_cast<std::size_t>(WideCharToMultiByte(CP_UTF8, 0, utf16.data(), size,
                                                               nullptr, 0, nullptr, nullptr)),
                  '\0');
  WideCharToMultiByte(CP_UTF8, 0, utf16.data(), size, out.data(), static_cast<int>(out.size()),
                      nullptr, nullptr);
  return out;
}

Entry look_at(const std::string& path) {
  const DWORD attributes = GetFileAttributesW(wide(path).c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return missing();
  if (attributes & FILE_ATTRIBUTE_REPARSE_POINT) return {.kind = EntryKind::link};
  return entry_of(attributes);
}

// Opened for nothing but its attributes, it follows links; a folder takes the flag for backups.
Entry look_through(const std::string& path) {
  const HANDLE file =
      CreateFileW(wide(path).c_str(), 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                  nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (file == INVALID_HANDLE_VALUE) return missing();
  BY_HANDLE_FILE_INFORMATION about = {};
  const bool disk = GetFileType(file) == FILE_TYPE_DISK && GetFileInformationByHandle(file, &about);
  CloseHandle(file);
  if (!disk) return {.kind = EntryKind::other};
  return entry_of(about.dwFileAttributes);
}

Expected<std::vector<std::string>> names_in(const std::string& folder) {
  WIN32_FIND_DATAW found = {};
  const HANDLE search = FindFirstFileW(wide(folder + "/*").c_str(), &found);
  if (search == INVALID_HANDLE_VALUE)
    return fail(folder, "cannot be opened", words_of_error(static_cast<int>(GetLastError())),
                "check its permissions");
  std::vector<std::string> names;
  do {
    names.push_back(narrow(found.cFileName));
  } while (FindNextFileW(search, &found));
  FindClose(search);
  std::ranges::sort(names);
  return names;
}

std::string words_of_error(int error) {
  wchar_t text[256];
  DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr,
                                static_cast<DWORD>(error), 0, text, 256, nullptr);
  while (length > 0 && (text[length - 1] <= L' ' || text[length - 1] == L'.')) length--;
  if (length == 0) return "error " + std::to_string(error);
  return narrow({text, length});
}

}  // namespace posenc::detail
