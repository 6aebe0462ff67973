// Files that tensors come in: .npy, safetensors and GGUF. A file is mapped, not read: only the
// pages asked for are touched, however big it is. The parsers take bytes, believe none before
// checking it, and need time and memory in proportion to the header that is there, not to the sizes
// it claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/error.h"
#include "posenc/tensor.h"

namespace [[gnu::visibility("default")]] posenc {

// A file's bytes, read-only. Copies share the mapping; the last one unmaps it.
class MappedFile {
 public:
  // Errors: no such file, not a plain file (a folder, a pipe, a device), cannot be mapped.
  static Expected<MappedFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> mapping_;
};

// A tensor as its file lists it, over the file's own bytes. `view` is there where posenc computes
// with the type and the data is aligned for it; it must not be written through.
struct StoredTensor {
  std::string name = {};
  std::string type = {};                 // as the format spells it: "F16", "Q4_K", "<f4"
  std::vector<std::int64_t> shape = {};  // last axis contiguous, whatever order the file has
  std::span<const std::byte> bytes = {};
  Tensor view = {};
};

// The tensor of that name, or null.
const StoredTensor* find_tensor(std::span<const StoredTensor> tensors, std::string_view name);

// The type posenc computes with, nothing where it does not ("I64", "Q4_K").
std::optional<DType> dtype_of(const StoredTensor& tensor);

// The numbers, row-major, whether their bytes are aligned or not. Errors: no type to compute with,
// bytes that are not in the file.
Expected<std::vector<double>> doubles_of(const StoredTensor& tensor);

// The same in float, also of ggml's blocks of quantized numbers: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0,
// Q4_K, Q5_K and Q6_K, as ggml's own code restores them. Errors: as above.
Expected<std::vector<float>> floats_of(const StoredTensor& tensor);

// `where` is what errors begin with: the file's name.
// Errors: not such a file, unknown type, truncated, sizes that overflow or do not fit the bytes.
Expected<StoredTensor> parse_npy(std::span<const std::byte> bytes, std::string_view where);

// What a safetensors file lists, over the file's own bytes.
struct Safetensors {
  std::vector<std::pair<std::string, std::string>> metadata = {};  // __metadata__
  std::vector<StoredTensor> tensors = {};                          // by offset
};
// Errors: as above; overlapping tensors or holes between them, a name twice, a header over 16 MiB
// or of more than a million values (the format allows 100 MB; headers of 100,000 tensors are
// below).
Expected<Safetensors> parse_safetensors(std::span<const std::byte> bytes, std::string_view where);

// An array of strings (a vocabulary) of a GGUF file. It stays in the file's own bytes until
// somebody asks for the texts.
struct GgufStrings {
  std::uint64_t count = 0;
  std::span<const std::byte> bytes = {};  // each text behind its length in eight bytes

  std::vector<std::string_view> texts() const;  // over the same bytes
  bool operator==(const GgufStrings& other) const { return texts() == other.texts(); }
};
// A metadata value of a GGUF file. Arrays of arrays are refused.
using GgufValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string,
                               std::vector<std::int64_t>, std::vector<double>, GgufStrings>;

// What a GGUF file's header lists, over the file's own bytes.
struct Gguf {
  std::uint32_t version = 3;
  std::vector<std::pair<std::string, GgufValue>> metadata = {};  // in the file's order
  // In the file's order. Without bytes where they lie beyond the file's end, or the type is not
  // known.
  std::vector<StoredTensor> tensors = {};
  std::uint64_t missing_bytes = 0;  // tensor data that a whole file would have and this one has not

  const GgufValue* find(std::string_view key) const;  // null if the file does not say it
};
// Versions 2 and 3, little endian. A file that ends within its tensor data (a download that goes
// on) is read, and missing_bytes says so; one that ends within its header is an error. Errors: not
// such a file, truncated, another version, big endian, a key or tensor twice, arrays of arrays,
// more than 4 axes, a bad alignment, sizes that overflow, tensors that overlap.
Expected<Gguf> parse_gguf(std::span<const std::byte> bytes, std::string_view where);

// Keys that a context of llama.cpp has cached. Layers with a window have a cache of their own.
struct LlamaCache {
  std::int64_t axes = 1;  // of positions: 3 (time, row, column) where the model sees pictures
  std::vector<std::int64_t> position = {};  // [axis][cell]
  std::vector<std::size_t> place = {};      // where the file has the position of each cell, 4 bytes
  std::vector<StoredTensor> keys = {};  // of each layer that the cache serves, [cell][all heads]
};

// A file of llama_state_seq_save_file or llama_state_save_file.
struct LlamaState {
  std::vector<std::int64_t> tokens = {};  // of the prompt
  std::vector<LlamaCache> caches = {};
  std::uint64_t unread_bytes = 0;  // behind the last cache that could be read: recurrent states
};
// Whether the bytes begin as those of llama_state_seq_save_file or llama_state_save_file do.
bool is_llama_state(std::span<const std::byte> bytes);
// Errors: not such a file, another version, truncated, caches of a kind that is not known.
Expected<LlamaState> parse_llama_state(std::span<const std::byte> bytes, std::string_view where);

// The tensors of a file, with the file they borrow from.
struct TensorFile {
  MappedFile file = {};
  std::vector<StoredTensor> tensors = {};
};
// A .npy (one tensor without a name), GGUF or safetensors file, told apart by its first bytes.
Expected<TensorFile> read_tensors(const std::string& path);

}  // namespace posenc
