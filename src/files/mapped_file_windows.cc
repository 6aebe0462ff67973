// A file's bytes through the system's page cache, as mapped_file_posix.cc has them elsewhere.
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "posenc/files.h"
#include "src/core/disk.h"
#include "src/core/wide.h"

namespace posenc {
namespace {

struct Handle {
  HANDLE value;
  explicit Handle(HANDLE opened) : value(opened) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (value && value != INVALID_HANDLE_VALUE) CloseHandle(value);
  }
};

std::unexpected<Error> failure(const std::string& path, const char* rule, const char* cure) {
  const DWORD why = GetLastError();
  return fail(path, rule, detail::words_of_error(static_cast<int>(why)),
              why == ERROR_ACCESS_DENIED ? "check its permissions" : cure);
}

}  // namespace

Expected<MappedFile> MappedFile::open(const std::string& path) {
  if (path.contains('\0')) return fail(path, "must be a path", "a zero byte in it");
  const detail::Entry entry = detail::look_through(path);
  if (entry.kind == detail::EntryKind::folder)
    return fail(path, "must be a regular file", "a folder", "give the file itself");
  if (entry.kind == detail::EntryKind::other)
    return fail(path, "must be a regular file", "a pipe, socket or device", "give the file itself");
  const Handle file(CreateFileW(detail::wide(path).c_str(), GENERIC_READ,
                                FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr));
  if (file.value == INVALID_HANDLE_VALUE)
    return failure(path, "cannot be opened", "check the path");
  LARGE_INTEGER size = {};
  if (!GetFileSizeEx(file.value, &size)) return failure(path, "cannot be read", "check the disk");

  MappedFile mapped;
  mapped.path_ = path;
  if (size.QuadPart == 0) return mapped;  // nothing can be mapped of it
  const Handle mapping(CreateFileMappingW(file.value, nullptr, PAGE_READONLY, 0, 0, nullptr));
  void* start = mapping.value ? MapViewOfFile(mapping.value, FILE_MAP_READ, 0, 0, 0) : nullptr;
  if (!start) return failure(path, "cannot be mapped", "copy it to a local disk");
  mapped.mapping_ = std::shared_ptr<const void>(start, [](void* view) { UnmapViewOfFile(view); });
  mapped.bytes_ = {static_cast<const std::byte*>(start), static_cast<std::size_t>(size.QuadPart)};
  return mapped;
}

}  // namespace posenc
