#include <cstring>

#include "posenc/files.h"

namespace posenc {
namespace {

bool begins(std::span<const std::byte> bytes, std::string_view word) {
  return bytes.size() >= word.size() && std::memcmp(bytes.data(), word.data(), word.size()) == 0;
}

}  // namespace

Expected<TensorFile> read_tensors(const std::string& path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file) return std::unexpected(file.error());
  const std::span<const std::byte> bytes = file->bytes();
  TensorFile read{.file = *file, .tensors = {}};
  if (begins(bytes, "\x93NUMPY")) {
    Expected<StoredTensor> array = parse_npy(bytes, path);
    if (!array) return std::unexpected(array.error());
    read.tensors.push_back(std::move(*array));
  } else if (begins(bytes, "GGUF") || begins(bytes, "FUGG")) {  // big endian: a clear refusal
    Expected<Gguf> gguf = parse_gguf(bytes, path);
    if (!gguf) return std::unexpected(gguf.error());
    read.tensors = std::move(gguf->tensors);
  } else if (begins(bytes, "version https://git-lfs")) {
    return fail(path, "must hold tensors", "a git-lfs pointer", "fetch the file: git lfs pull");
  } else {
    Expected<Safetensors> safetensors = parse_safetensors(bytes, path);
    if (!safetensors) return std::unexpected(safetensors.error());
    read.tensors = std::move(safetensors->tensors);
  }
  return read;
}

}  // namespace posenc
