// What stands before the numbers of a .safetensors file.
#pragma once

#include <cstddef>
#include <string>

namespace posenc::detail {

// `header`, JSON that names the tensors, behind its size in eight bytes. Readers of the format want
// the numbers at a multiple of eight.
inline std::string safetensors_front(std::string header) {
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string size(8, '\0');
  for (std::size_t byte = 0; byte < size.size(); ++byte)
    size[byte] = static_cast<char>(header.size() >> (8 * byte) & 0xff);
  return size + header;
}

}  // namespace posenc::detail
