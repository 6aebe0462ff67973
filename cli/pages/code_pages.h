// What the pages of docs/ say of a finding's code, as programs read it (SARIF's rules).
#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

// docs/warnings.md and docs/codes.md, which cmake/embed_text.cmake puts into the command.
extern const std::string_view warnings_page, codes_page;

struct CodeText {
  std::string what, cure;  // plain text; "": the pages have none
};

// Of a row of their tables, whose first column names the code. `engine_` in front is of lint.
CodeText text_of_code(std::string_view code);

}  // namespace posenc::cli
