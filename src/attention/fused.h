// The loop of attention: a block of queries meets the keys a block at a time, for any plan and any
// provider of biases (row_bias.h). Positions, mask and plan become what the kernels of gemm.h and
// softmax.h take.
#pragma once

#include <cstdint>

#include "posenc/attention.h"
#include "src/attention/arguments.h"
#include "src/attention/row_bias.h"
#include "src/kernels/scratch.h"
#include "src/kernels/threads.h"

namespace posenc::detail {

constexpr std::int64_t key_block = 512;  // keys that stand ready at a time, at most

// Work of an attention, cut into blocks of queries: the rows of all query heads that share a key
// head. Each block stands alone and is done by one thread.
struct AttendJob {
  const AttendArguments* in = nullptr;
  const Plan* plan = nullptr;
  bool queries_rotated = false, keys_rotated = false;
  const void* caller = this_thread();
  bool pairs = false;             // products are those of gemm16.h
  std::int64_t keys = key_block;  // that stand ready at a time
  std::int64_t block = 0;         // queries of a head in a block
  std::int64_t blocks = 0;        // of a key head

  AttendJob(const AttendArguments& arguments, const Plan& with);
  std::int64_t size() const { return in->q.shape[0] * in->k.shape[1] * blocks; }
};

// Blocks [first, last) of a job that has queries and keys. Every distance that somebody sees is in
// the plan's tables. The bias is this thread's own.
template <class T>
void attend_blocks(const AttendJob& job, RowBias<T>& bias, std::int64_t first, std::int64_t last);
extern template void attend_blocks(const AttendJob&, RowBias<float>&, std::int64_t, std::int64_t);
extern template void attend_blocks(const AttendJob&, RowBias<double>&, std::int64_t, std::int64_t);

// Rotates the queries and keys of short texts for all heads at once, which then share their cos and
// sin; elsewhere blocks are rotated as they are read, which needs no memory. `scratch` holds what
// is rotated.
template <class T>
void rotate_short(AttendArguments& in, AttendJob& job, Scratch& scratch);
extern template void rotate_short<float>(AttendArguments&, AttendJob&, Scratch&);
extern template void rotate_short<double>(AttendArguments&, AttendJob&, Scratch&);

// The number that tensors of a dtype are computed in, as a null pointer for `act`.
template <class Act>
decltype(auto) with_compute_type(DType dtype, const Act& act) {
  return dtype == DType::f64 ? act(static_cast<double*>(nullptr))
                             : act(static_cast<float*>(nullptr));
}

// Attends on as many threads as the size deserves; bias_of(job) gives each its provider.
template <class T, class BiasOf>
void attend_all(AttendArguments in, const Plan& plan, const BiasOf& bias_of) {
  if (in.out.size() == 0) return;
  Scratch scratch;
  AttendJob job(in, plan);
  rotate_short<T>(in, job, scratch);
  const std::int64_t logits = in.q.shape[0] * in.q.shape[1] * in.q.shape[2] * in.k.shape[2];
  share_out(job.size(), thread_count(in.threads, logits),
            [&](std::int64_t first, std::int64_t last) {
              auto bias = bias_of(job);
              attend_blocks<T>(job, bias, first, last);
            });
}

// The attention of a plan alone, its arguments and their reach checked.
void attend_by_plan(const AttendArguments& in, const Plan& plan);

}  // namespace posenc::detail
