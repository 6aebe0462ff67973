// A file's bytes through the system's page cache: a page is read when it is touched, so opening a
// terabyte costs what opening a kilobyte does. A file cut short while it is mapped ends the process
// (SIGBUS), as for every program that maps files.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "posenc/files.h"

static_assert(std::endian::native == std::endian::little,
              "numbers are read without swapping bytes");

namespace posenc {
namespace {

struct Descriptor {
  int number;
  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

// Files up to this size are read at once: a mapping and its first page cost more.
constexpr std::size_t small = 32 * 1024;

// All of `file`, less where it has been cut short since its size was asked; nothing where the disk
// fails, as errno says.
std::optional<std::size_t> read_all(const Descriptor& file, std::byte* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.number, to + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

Expected<MappedFile> MappedFile::open(const std::string& path) {
  if (path.contains('\0')) return fail(path, "must be a path", "a zero byte in it");
  // A pipe without a writer would block here.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0)
    return fail(path, "cannot be opened", std::strerror(errno),
                errno == EACCES ? "check its permissions" : "check the path");
  struct stat status = {};
  if (::fstat(file.number, &status) != 0)
    return fail(path, "cannot be read", std::strerror(errno), "check the disk");
  if (!S_ISREG(status.st_mode))
    return fail(path, "must be a regular file",
                S_ISDIR(status.st_mode) ? "a folder" : "a pipe, socket or device",
                "give the file itself");

  MappedFile mapped;
  mapped.path_ = path;
  if (status.st_size == 0) return mapped;  // nothing can be mapped of it
  if (static_cast<std::uint64_t>(status.st_size) > std::numeric_limits<std::size_t>::max())
    return fail(path, "must fit into the address space", std::to_string(status.st_size) + " bytes",
                "use a 64-bit build");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size <= small) {
    const auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
    const auto there = read_all(file, bytes.get(), size);
    if (!there) return fail(path, "cannot be read", std::strerror(errno), "check the disk");
    mapped.mapping_ = bytes;
    mapped.bytes_ = {bytes.get(), *there};
    return mapped;
  }
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (start == MAP_FAILED)
    return fail(path, "cannot be mapped", std::strerror(errno), "copy it to a local disk");
  mapped.mapping_ =
      std::shared_ptr<const void>(start, [size](void* mapping) { ::munmap(mapping, size); });
  mapped.bytes_ = {static_cast<const std::byte*>(start), size};
  return mapped;
}

}  // namespace posenc
