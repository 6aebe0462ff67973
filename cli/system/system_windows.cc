#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <shellapi.h>

#include <cstdio>
#include <iterator>

#include "cli/system/system.h"
#include "src/core/wide.h"

namespace posenc::cli {

std::size_t machine_memory() {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof status;
  GlobalMemoryStatusEx(&status);
  return static_cast<std::size_t>(status.ullTotalPhys);
}

std::size_t terminal_columns() {
  CONSOLE_SCREEN_BUFFER_INFO info = {};
  if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info)) return 0;
  return static_cast<std::size_t>(info.srWindow.Right - info.srWindow.Left + 1);
}

bool speaks_utf8() { return true; }

std::string own_program() {
  wchar_t path[32768];  // the longest that Windows knows
  const DWORD size = GetModuleFileNameW(nullptr, path, static_cast<DWORD>(std::size(path)));
  return size < std::size(path) ? detail::narrow({path, size}) : "";
}

std::vector<std::string> arguments_of(int, char**) {
  // main's own arguments have lost what the code page lacks.
  int count = 0;
  LPWSTR* const words = CommandLineToArgvW(GetCommandLineW(), &count);
  std::vector<std::string> out;
  for (int i = 1; i < count; i++) out.push_back(detail::narrow(words[i]));
  LocalFree(words);
  return out;
}

void begin() {
  SetConsoleOutputCP(CP_UTF8);
  for (std::FILE* const stream : {stdin, stdout, stderr}) _setmode(_fileno(stream), _O_BINARY);
}

}  // namespace posenc::cli
