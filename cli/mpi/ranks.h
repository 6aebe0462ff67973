// A command on the ranks that mpirun starts. posenc itself needs no MPI installed: where a command
// is asked for one, the process becomes posenc-mpi, the same program linked with it, which lies
// beside posenc or where programs of libraries do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evidence/lab/model/llama.h"
#include "posenc/attention.h"
#include "posenc/content.h"
#include "posenc/error.h"

namespace posenc::cli {

// An attention over tokens that the ranks share out. q, k and v are views of files, of which a rank
// reads its tokens.
struct DistributedCall {
  const AttentionInputs& in;  // of the whole text
  const Plan& plan;
  const ContentScheme* content;
  std::string layout, strategy;
  std::int64_t block = 1;   // of a striped layout
  std::string out, header;  // the file, and what it begins with
};

// What `posenc bench ring` measures: one text of `length` tokens, causal, rotated, in float32.
struct RingWanted {
  std::int64_t heads = 16, kv_heads = 4, head_dim = 128, length = 4096, window = 0;
  std::vector<std::string> layouts = {"contiguous", "zigzag", "striped"},
                           strategies = {"ring", "gather", "heads"};
  bool quick = false, json = false;
  bool simulated = false;  // on machines that are not there: once, since every run is as long
};

class Ranks {
 public:
  virtual ~Ranks() = default;
  // The same error on all ranks.
  virtual Expected<void> agree(const Expected<void>& own) = 0;
  virtual Expected<void> attend(const DistributedCall& call) = 0;
  // What rank 0 is to print.
  virtual Expected<std::string> bench(const RingWanted& wanted) = 0;
  // By which the ranks read a passage together.
  virtual lab::AttentionMaker lab_attention() = 0;
};

// Of posenc-mpi; null in posenc.
extern Ranks* ranks_of_mpi;

// Runs posenc-mpi in place of this process, with its arguments. Errors: it is not there.
std::unexpected<Error> become_posenc_mpi();

}  // namespace posenc::cli
