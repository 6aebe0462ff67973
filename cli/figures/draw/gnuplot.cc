#include "cli/figures/draw/gnuplot.h"

#include <algorithm>
#include <string>

#include "cli/figures/draw/process.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// The complaint without the script's lines around it.
std::string complaint(const std::string& words) {
  std::string out;
  for (std::size_t at = 0, end; at < words.size() && out.size() < 500; at = end + 1) {
    end = std::min(words.find('\n', at), words.size());
    std::string line = words.substr(at, end - at);
    line.erase(0, line.find_first_not_of(" \t^"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line.starts_with("gnuplot>")) continue;
    out += (out.empty() ? "" : " | ") + line;
  }
  return out;
}

// The length of the UTF-8 sequence that `text` begins with, 0 if it begins with none.
std::size_t sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80                      ? 1
                             : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                             : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                             : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                 : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; i++)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  while (!text.empty()) {
    const std::size_t length = sequence(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0 || first < 0x20 || first == 0x7F) {
      out += length == 0 ? "\uFFFD" : " ";
    } else if (first == '\'') {
      out += "''";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + "'";
}

Expected<std::string> gnuplot(std::string_view script) {
  POSENC_TRY(drawn, run_gnuplot(script));
  if (drawn.status == 0 && drawn.signal == 0 && !drawn.picture.empty())
    return std::move(drawn.picture);
  std::string said = complaint(drawn.words);
  if (drawn.signal != 0)
    said += (said.empty() ? "" : " | ") + ("ended by signal " + std::to_string(drawn.signal));
  if (said.empty()) said = "exit code " + std::to_string(drawn.status);
  return fail("gnuplot", "drew no picture", said, "gnuplot 5.2 or newer with cairo is needed");
}

}  // namespace posenc::cli
