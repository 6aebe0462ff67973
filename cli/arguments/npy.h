// Arrays in memory, read from and written to .npy and .safetensors files, whose formats the library
// knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/error.h"
#include "posenc/files.h"
#include "posenc/tensor.h"

namespace posenc::cli {

// In .npy bfloat16 is uint16, since NumPy has no name for it: --dtype says what is meant.
enum class NpyType : std::uint8_t { f64, f32, f16, u16, i64, i32, u8, boolean, bf16 };
std::string_view name(NpyType type);
std::size_t size_of(NpyType type);

struct Array {
  NpyType type = NpyType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  std::int64_t size() const;  // number of elements
};

// An array of zeros. Errors: a size no memory holds.
Expected<Array> make_array(NpyType type, std::vector<std::int64_t> shape);

// "model.safetensors:wpe.weight" as file and tensor; of other texts the tensor is empty.
struct ArrayName {
  std::string file, tensor;
};
ArrayName array_name(const std::string& path);

// Whether a text names a file of arrays, not the numbers themselves.
bool names_array(std::string_view text);

// A .npy file, FILE:TENSOR of a .safetensors or .gguf file (or FILE, of one tensor), or - for
// either on standard input. Errors: what the library says of the file, no such tensor, a type that
// is none of NpyType's, more axes than a Tensor has, more bytes than the memory.
Expected<Array> read_array(const std::string& path);

// The same where the numbers stay in the file: `array` has none, and only the pages that somebody
// reads are. Those that came by standard input, or lie across their type's bounds, are in `array`.
struct MappedArray {
  Array array;
  MappedFile file;
  std::span<const std::byte> data;
};
Expected<MappedArray> map_array(const std::string& path);

// What a .npy file begins with.
std::string npy_header(const Array& array);

// Written beside its name and renamed when whole.
Expected<void> write_npy(const std::string& path, const Array& array);

// What the name of a file for an array asks for. Errors: an ending that is none of .npy,
// .safetensors, .csv and .txt, and not "-".
enum class ArrayFormat { npy, safetensors, text };
Expected<ArrayFormat> array_format(std::string_view path);

// The array as the name says: .npy, .safetensors (FILE:TENSOR, else the tensor is "tensor"), or
// text (.csv, .txt, and "-", which is standard output): a line
// for each row of the last axis, rows in the order of the axes before it, the shortest numbers that
// read back the same, commas between. `dtype` "bfloat16" says what uint16 stands for. A file is
// written beside its name and renamed when whole. `metadata` is kept by .safetensors alone. Errors:
// those of array_format.
using Metadata = std::vector<std::pair<std::string, std::string>>;
Expected<void> write_array(const std::string& path, const Array& array, std::string_view dtype = {},
                           const Metadata& metadata = {});

// What a .safetensors file says of the tensor that a path names, in its metadata by the key
// PREFIX:TENSOR; nothing of other files, or where it says nothing. Errors: those of read_array.
Expected<std::optional<std::string>> said_of_tensor(const std::string& path,
                                                    std::string_view prefix);
// The tensor's name in a file that write_array makes of a path.
std::string tensor_written(const std::string& path);

// A view of the floating-point array, all axes. `dtype` "" takes the file's own; "bfloat16" reads
// uint16 as bfloat16. Errors: integers, a dtype that is not the file's.
Expected<Tensor> tensor_of(Array& array, std::string_view dtype, std::string_view where);

bool is_of_floats(const Array& array);

// Real positions of one sequence, out of a .npy file of floats [seq] or [axis][seq]; absent of
// other texts, which positions() (parse.h) reads. Errors: those of read_array, more axes.
struct RealPositions {
  Array numbers;
  Tensor at = {};  // [axis][1][seq] of `numbers`
};
Expected<std::optional<RealPositions>> real_positions(const std::string& text);

// The integers of an array of any integer or boolean type.
Expected<std::vector<std::int64_t>> integers_of(const Array& array, std::string_view where);

// The type of that name, of those that are computed with. Errors: an unknown name.
Expected<NpyType> type_named(std::string_view dtype);

}  // namespace posenc::cli
