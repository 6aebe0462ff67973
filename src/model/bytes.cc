// Tells the three kinds of model file apart by content, as names of files say little.
#include <string_view>

#include "src/core/try.h"
#include "src/model/config.h"
#include "src/model/params.h"

namespace posenc {

Expected<Model> detail::read_text_of_model(std::string_view text, std::string_view name) {
  POSENC_TRY(json, parse_json(text, name));
  return is_params(json) ? read_params_json(json, name) : read_config_json(json, name);
}

Expected<Model> read_model_bytes(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("GGUF") || text.starts_with("FUGG")) return read_gguf(bytes, name);
  return detail::read_text_of_model(text, name);
}

}  // namespace posenc
