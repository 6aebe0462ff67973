// What is lost when keys are used again: a chunk's behind a prefix that it was read without, and
// those that move by a little many times in 16 bits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/lab/model/llama.h"
#include "posenc/tensor.h"

namespace posenc::lab {

struct ReuseOptions {
  std::int64_t prefix = 512, chunk = 512, tail = 256;    // tokens, one behind the other in the text
  std::int64_t places = 4;                               // spread evenly over the text
  std::vector<std::int64_t> anew = {0, 4, 16, 64, 256};  // so many first tokens of the chunk
};

// From a fresh prefill's to those with re-used keys, over the tail's tokens.
struct Lost {
  double divergence = 0;                 // KL(fresh ‖ re-used) of the next token, nats
  double loss = 0;                       // of the text, re-used minus fresh, nats
  std::vector<double> by_distance = {};  // divergence, for each band of Reuse::bands
};

// Where the keys and values of a chunk come from.
enum class ChunkRead {
  alone,      // read as a text of its own, from position 0
  elsewhere,  // read behind another part of the text, half as long as the prefix
};
std::string_view name(ChunkRead read);

struct ReusedChunk {
  ChunkRead read = ChunkRead::alone;
  bool moved = true;      // rekeyed to where the chunk stands; else left as they were rotated
  std::int64_t anew = 0;  // first tokens that are read again behind the prefix
  Lost lost = {};
};

// A layer that alone re-uses the chunk, all others being fresh: read alone and moved.
struct ReusedLayer {
  double keys = 0, values = 0;  // ‖re-used − fresh‖ / ‖fresh‖
  Lost lost = {};
};

struct Reuse {
  std::string model;
  ReuseOptions options = {};
  std::vector<std::int64_t> bands = {};  // last distance behind the chunk of each, from 1 on
  std::vector<ReusedChunk> chunks = {};
  Lost left_out = {};  // the tail right behind the prefix, without the chunk
  std::vector<ReusedLayer> layers = {};
};

// Errors: a text that is too short, no chunk or no tail, more tokens anew than the chunk has.
// `told` hears which part of the work is done, of 1.
Expected<Reuse> reuse(const Llama& model, std::span<const std::int32_t> tokens,
                      const ReuseOptions& options, const std::function<void(double)>& told = {});

// The keys of a chunk in one dtype, moved on by `moves` positions: at once, and one by one.
struct Drift {
  DType dtype = DType::f32;
  double stood = 0, once = 0, stepwise = 0;  // ‖keys − exact‖ / ‖exact‖, unmoved and moved
  Lost lost_once = {}, lost_stepwise = {};   // beside the same keys unmoved
};
// Of the chunk and tail of `options`, without a prefix, at the same places.
Expected<std::vector<Drift>> drift(const Llama& model, std::span<const std::int32_t> tokens,
                                   const ReuseOptions& options, std::int64_t moves,
                                   std::span<const DType> dtypes);

std::string to_json(const Reuse& reuse, std::span<const Drift> drifts, std::int64_t moves);
// What it has printed. Errors: something else.
Expected<Reuse> reuse_of_json(std::string_view text, std::string_view where);

}  // namespace posenc::lab
