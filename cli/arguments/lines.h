// A stream of lines, each answered by a line: on all cores, in the order in which they came, in
// memory that does not grow with them. Fleets of models go through it (`posenc lint --jsonl -`).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "posenc/error.h"

namespace posenc::cli {

struct Line {
  std::string_view text;    // without its end, CR LF among these
  std::int64_t number = 0;  // from 1
};

struct LineAnswer {
  std::string line;  // without a newline at its end
  bool bad = false;
};

struct Answered {
  std::int64_t lines = 0, bad = 0;
};

// `source` is a file's name, or "-". `answer` is called by `threads` threads at once (0: as many as
// there are cores); empty lines get none. A line above 16 MiB comes as its first bytes with
// `too_long`'s answer. `work` names it where a terminal shows how far it has come. Stops where
// nobody reads standard output any more. Errors: no such file.
Expected<Answered> answer_lines(const std::string& source, std::string_view work, int threads,
                                const std::function<LineAnswer(const Line&)>& answer,
                                const std::function<LineAnswer(const Line&)>& too_long);

}  // namespace posenc::cli
