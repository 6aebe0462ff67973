#include "evidence/lab/train/weights.h"

#include <algorithm>
#include <utility>
#include <nlohmann/json.hpp>

#include "posenc/files.h"
#include "posenc/tensor.h"
#include "src/core/safetensors_front.h"
#include "src/core/try.h"

namespace posenc::lab {
namespace {

constexpr std::string_view cell_key = "posenc.cell";

// Rows of a matrix are as long as what it reads; the others are vectors.
std::vector<std::int64_t> shape_of(const Parameter& parameter, const DecoderShape& shape) {
  const auto size = std::ssize(parameter.value);
  const bool down = parameter.name.ends_with(".down");
  const std::int64_t in = down ? shape.hidden : shape.width;
  if (size == in && !down) return {size};
  return {size / in, in};
}

}  // namespace

Expected<std::string> weights_of(const Cell& cell, Decoder& decoder) {
  using Json = nlohmann::ordered_json;
  Json header = {{"__metadata__", {{std::string(cell_key), to_json(cell)}}}};
  std::string data;
  for (const Parameter& parameter : decoder.parameters().all()) {
    std::vector<std::uint16_t> halves(parameter.value.size());
    const Tensor into = Tensor::dense(halves.data(), DType::f16, {std::ssize(halves)});
    for (std::size_t i = 0; i < halves.size(); ++i)
      into.set(static_cast<std::int64_t>(i), parameter.value[i]);
    const std::size_t from = data.size();
    data.append(reinterpret_cast<const char*>(halves.data()), 2 * halves.size());
    header[parameter.name] = {{"dtype", "F16"},
                              {"shape", shape_of(parameter, cell.shape)},
                              {"data_offsets", {from, data.size()}}};
  }
  return detail::safetensors_front(header.dump()) + data;
}

Expected<TrainedDecoder> read_weights(const std::string& path) {
  POSENC_TRY(file, MappedFile::open(path));
  POSENC_TRY(stored, parse_safetensors(file.bytes(), path));
  const auto found =
      std::ranges::find(stored.metadata, cell_key, &std::pair<std::string, std::string>::first);
  if (found == stored.metadata.end())
    return fail(path, "must be a decoder that the lab has trained", "no posenc.cell in it",
                "posenc lab run --cell CELL --weights FILE writes one");
  POSENC_TRY(cell, read_cell(found->second, path + ": " + std::string(cell_key)));
  POSENC_TRY(scheme, parse_scheme(cell.scheme));
  POSENC_TRY(decoder, Decoder::make(cell.shape, std::move(scheme), cell.seed));
  for (Parameter& parameter : decoder.parameters().all()) {
    const StoredTensor* tensor = find_tensor(stored.tensors, parameter.name);
    if (tensor == nullptr) return fail(path + ": " + parameter.name, "is missing");
    POSENC_TRY(numbers, floats_of(*tensor));
    if (numbers.size() != parameter.value.size())
      return fail(
          path + ": " + parameter.name, "must have the numbers that its cell asks for",
          std::to_string(numbers.size()) + " for " + std::to_string(parameter.value.size()));
    parameter.value = std::move(numbers);
  }
  return TrainedDecoder{std::move(cell), std::move(decoder)};
}

}  // namespace posenc::lab
