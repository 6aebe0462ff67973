// A trained decoder as a .safetensors file: its cell in the metadata, its parameters in float16.
#pragma once

#include <string>

#include "evidence/lab/train/cell.h"

namespace posenc::lab {

// The file's bytes.
Expected<std::string> weights_of(const Cell& cell, Decoder& decoder);

struct TrainedDecoder {
  Cell cell;
  Decoder decoder;
};
// Errors: those of read_tensors and read_cell; no cell in the metadata, a parameter that is missing
// or of another size, no OpenBLAS on this machine.
Expected<TrainedDecoder> read_weights(const std::string& path);

}  // namespace posenc::lab
