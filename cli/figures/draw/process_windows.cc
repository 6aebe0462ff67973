#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "cli/figures/draw/process.h"
#include "src/core/disk.h"
#include "src/core/wide.h"

namespace posenc::cli {
namespace {

// A file that the process may inherit, and that is removed when it is closed.
class Temporary {
 public:
  Temporary() {
    wchar_t folder[MAX_PATH + 1], name[MAX_PATH + 1];
    if (!GetTempPathW(MAX_PATH, folder) || !GetTempFileNameW(folder, L"pos", 0, name)) return;
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, nullptr, TRUE};
    file_ = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                        &inherited, CREATE_ALWAYS,
                        FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  }
  ~Temporary() {
    if (file_ != INVALID_HANDLE_VALUE) CloseHandle(file_);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  HANDLE handle() const { return file_; }
  void rewind() const { SetFilePointer(file_, 0, nullptr, FILE_BEGIN); }
  bool write(std::string_view text) const {
    DWORD count = 0;
    return WriteFile(file_, text.data(), static_cast<DWORD>(text.size()), &count, nullptr) &&
           count == text.size();
  }
  std::string content() const {
    rewind();
    std::string text;
    char chunk[1 << 14];
    for (DWORD count = 0; ReadFile(file_, chunk, sizeof chunk, &count, nullptr) && count > 0;)
      text.append(chunk, count);
    return text;
  }

 private:
  HANDLE file_ = INVALID_HANDLE_VALUE;
};

std::string last_error() { return detail::words_of_error(static_cast<int>(GetLastError())); }

}  // namespace

Expected<Drawn> run_gnuplot(std::string_view script) {
  const Temporary in, out, words;
  if (!in.write(script) || out.handle() == INVALID_HANDLE_VALUE ||
      words.handle() == INVALID_HANDLE_VALUE)
    return fail("gnuplot", "needs room for temporary files", last_error(), "set TMP");
  in.rewind();
  STARTUPINFOW how = {};
  how.cb = sizeof how;
  how.dwFlags = STARTF_USESTDHANDLES;
  how.hStdInput = in.handle();
  how.hStdOutput = out.handle();
  how.hStdError = words.handle();
  PROCESS_INFORMATION process = {};
  wchar_t line[] = L"gnuplot --default-settings";
  if (!CreateProcessW(nullptr, line, nullptr, nullptr, TRUE, CREATE_NO_WINDOW, nullptr, nullptr,
                      &how, &process)) {
    if (GetLastError() != ERROR_FILE_NOT_FOUND)
      return fail("gnuplot", "cannot be started", last_error());
    return fail(
        "gnuplot", "must be installed to draw pictures", "no such command",
        "install gnuplot and put it on PATH, or take the numbers with --csv and no picture");
  }
  WaitForSingleObject(process.hProcess, INFINITE);
  DWORD status = 0;
  GetExitCodeProcess(process.hProcess, &status);
  CloseHandle(process.hProcess);
  CloseHandle(process.hThread);
  return Drawn{out.content(), words.content(), static_cast<int>(status)};
}

}  // namespace posenc::cli
