// UTF-8 as Windows takes it.
#pragma once

#include <string>
#include <string_view>

namespace posenc::detail {

std::wstring wide(std::string_view utf8);
std::string narrow(std::wstring_view utf16);

}  // namespace posenc::detail
