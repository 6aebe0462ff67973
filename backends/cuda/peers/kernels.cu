// Other projects' kernels without their frameworks, for peers.py: each compiled alone (PEER_...)
// from a folder of its sources, which is not part of posenc, into a library with one function. q
// [token][head][128] and k likewise, dense, rotated in place.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>

namespace {

struct Call {
  void *q, *k;
  const float* table;   // [position][cosines of 64 pairs, sines]; absent: the kernel makes its own
  const float* angles;  // [position][angles of 64 pairs, the same again]
  const int64_t* positions;
  int tokens, heads, kv_heads, interleaved, inverse;
  float theta;
  cudaStream_t stream;
};
constexpr int dim = 128;

}  // namespace

#if defined(PEER_FLASHINFER)
#include "flashinfer/pos_enc.cuh"

template <class T>
int rotate(const Call& x) {
  const auto q = static_cast<T*>(x.q), k = static_cast<T*>(x.k);
  const auto ids = const_cast<int64_t*>(x.positions);
  const size_t q_row = static_cast<size_t>(x.heads) * dim,
               k_row = static_cast<size_t>(x.kv_heads) * dim;
  if (x.table == nullptr)
    return flashinfer::BatchQKApplyRotaryPosIds<T, int64_t>(
        q, k, q, k, ids, x.tokens, x.heads, x.kv_heads, dim, dim, q_row, dim, k_row, dim, q_row,
        dim, k_row, dim, x.interleaved, 1.0f, x.theta, x.stream);
  return flashinfer::BatchQKApplyRotaryPosIdsCosSinCache<T, int64_t>(
      q, k, q, k, const_cast<float*>(x.table), ids, x.tokens, x.heads, x.kv_heads, dim, dim, q_row,
      dim, k_row, dim, q_row, dim, k_row, dim, x.interleaved, x.stream);
}

#elif defined(PEER_VLLM)
#define VLLM_LDG(address) __ldg(address)
#include PEER_VLLM  // the kernels of pos_encoding_kernels.cu, cut out by peers.py

template <class T>
int rotate(const Call& x) {
  const dim3 block(std::min<int64_t>(x.heads * dim / 2, 512));
  const auto launch = [&](auto kernel) {
    // clang-format off: it would part the last three signs
    kernel<<<x.tokens, block, 0, x.stream>>>(
        x.positions, static_cast<T*>(x.q), static_cast<T*>(x.k), x.table, dim, x.heads * dim,
        x.kv_heads * dim, dim, x.heads, x.kv_heads, dim, 0, x.inverse != 0);
    // clang-format on
  };
  if (x.interleaved)
    launch(vllm::rotary_embedding_kernel<T, float, false>);
  else
    launch(vllm::rotary_embedding_kernel<T, float, true>);
  return cudaGetLastError();
}

#elif defined(PEER_TE)
#include <cassert>
#include PEER_TE  // the kernels of fused_rope.cu, cut out by peers.py

// Of tokens in a row, as it takes no ids; to its own memory, as in training (in place its threads
// race).
template <class T>
int rotate(const Call& x) {
  for (const bool keys : {false, true}) {
    const int heads = keys ? x.kv_heads : x.heads;
    T* const data = static_cast<T*>(keys ? x.k : x.q);
    transformer_engine::fused_rope_forward_kernel<T>
        // clang-format off: it would part the last three signs
        <<<dim3(x.tokens, 1), dim3(32, heads < 16 ? 4 : 8), 0, x.stream>>>(
            data, nullptr, x.angles, nullptr, data + static_cast<int64_t>(x.tokens) * heads * dim,
            x.interleaved != 0, 1, 0, x.tokens, heads, dim, dim, heads * dim, heads * dim, dim, 1,
            heads * dim, heads * dim, dim, 1);
    // clang-format on
  }
  return cudaGetLastError();
}
#endif

extern "C" int posenc_peer_rotate(int dtype, void* q, void* k, const float* table,
                                  const float* angles, const int64_t* positions, int tokens,
                                  int heads, int kv_heads, int interleaved, int inverse,
                                  float theta, void* stream) {
  const Call x{q,     k,        table,       angles,  positions, tokens,
               heads, kv_heads, interleaved, inverse, theta,     static_cast<cudaStream_t>(stream)};
  switch (dtype) {
#ifndef PEER_FLASHINFER
    case 0: return rotate<float>(x);
#endif
    case 1: return rotate<__half>(x);
    case 2: return rotate<__nv_bfloat16>(x);
  }
  return -1;
}
