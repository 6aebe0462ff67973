// Writes a file beside the one that it will replace. Until it is renamed it has a short name of its
// own, which the handlers of signals remove, so that an interrupted command leaves the folder as it
// was.
#include "cli/arguments/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "cli/arguments/ending_signals.h"

#ifndef O_PATH  // macOS
#define O_PATH O_RDONLY
#endif

namespace posenc::cli {
namespace {

// What a handler reads: the file that has not been renamed yet.
struct Unfinished {
  int folder = -1;
  char name[48] = "";
};
Unfinished unfinished;

void remove_unfinished(int signal) {
  unlinkat(unfinished.folder, unfinished.name, 0);
  std::raise(signal);  // its default again, which ends the program
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  // 0, or why what was written may be lost.
  int close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

// A new file in the folder, by a name that no other process has.
int create_unfinished(int folder, mode_t mode) {
  unfinished.folder = folder;
  for (int n = 0; n < 100; n++) {
    std::snprintf(unfinished.name, sizeof unfinished.name, ".posenc-%ld-%d",
                  static_cast<long>(getpid()), n);
    const int file = openat(folder, unfinished.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

// Of the file that was there. Where its group cannot be given, the new group may do what everybody
// may.
int keep_mode_and_owner(const struct stat& from, int to) {
  (void)!fchown(to, from.st_uid, static_cast<gid_t>(-1));
  mode_t mode = from.st_mode & 0777;
  if (fchown(to, static_cast<uid_t>(-1), from.st_gid) != 0)
    mode = (mode & 0707) | (mode & 0007) << 3;
  return fchmod(to, mode) == 0 ? 0 : errno;
}

}  // namespace

Expected<void> write_whole(const std::string& path, std::initializer_list<std::string_view> parts) {
  const auto failure = [&path](int reason) {
    return fail(path, "cannot be written", std::strerror(reason));
  };
  // stat() is asked first, as it refuses links that the system does not let one follow.
  struct stat before = {};
  const bool is_there = stat(path.c_str(), &before) == 0;
  if (!is_there && errno != ENOENT) return failure(errno);
  if (is_there && !S_ISREG(before.st_mode))
    return fail(path, "the output must be a regular file", "", "give a file name");
  // The system lets root write what nobody is meant to.
  if (is_there &&
      ((before.st_mode & 0222) == 0 || faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)) {
    char mode[16];
    std::snprintf(mode, sizeof mode, "mode %03o", before.st_mode & 0777u);
    return fail(path, "the file that is there must be writable", mode,
                "chmod u+w, or name another");
  }

  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(target, error); links++)
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  const std::string parent = target.parent_path().empty() ? "." : target.parent_path().string();
  const Descriptor folder(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() < 0) return failure(errno);

  const AtTheEnd removed_at_the_end(remove_unfinished);
  Descriptor file(create_unfinished(folder.number(), is_there ? 0600 : 0666));
  if (file.number() < 0 && (errno == EACCES || errno == EROFS))
    return fail(path, "its folder must be writable, as the output is renamed when it is whole",
                std::strerror(errno), "write it elsewhere and copy it");
  if (file.number() < 0) return failure(errno);
  int reason = 0;
  for (const std::string_view part : parts)
    if (reason == 0) reason = write_all(file.number(), part);
  if (reason == 0 && is_there) reason = keep_mode_and_owner(before, file.number());
  if (const int lost = file.close(); reason == 0) reason = lost;
  if (reason == 0 &&
      renameat(folder.number(), unfinished.name, folder.number(), target.filename().c_str()) != 0)
    reason = errno;
  if (reason == 0) return {};
  unlinkat(folder.number(), unfinished.name, 0);
  return failure(reason);
}

}  // namespace posenc::cli
