// Highway has no such products in the releases that distributions carry: they are written in
// intrinsics here, and chosen by what the processor says of itself. Nothing else in this file needs
// more than the oldest processor.
#include "src/kernels/gemm16.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <type_traits>

#if POSENC_SIMD && defined(__x86_64__)
#define POSENC_PAIRS 1
#include <immintrin.h>

#include "src/kernels/cpuid.h"
#else
#define POSENC_PAIRS 0
#endif

// bfmmla is asked for where the system tells of it.
#if POSENC_SIMD && defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__))
#define POSENC_QUADS 1
#include <arm_neon.h>
#ifdef __linux__
#include <sys/auxv.h>
#else
#include <sys/sysctl.h>
#endif
#else
#define POSENC_QUADS 0
#endif

// Only Linux is asked for the tiles' registers.
#if POSENC_PAIRS && defined(__linux__)
#define POSENC_TILES 1
#include <sys/syscall.h>
#include <unistd.h>
#else
#define POSENC_TILES 0
#endif

namespace posenc::detail {
namespace {

constexpr std::int64_t lanes = 16;  // columns of a vector or tile

// Calls act(first column, columns, its b) for each panel.
template <class Act>
void each_panel(const Gemm16& p, const Act& act) {
  const std::int64_t width = p.panel_columns == 0 ? p.columns : p.panel_columns;
  const Pair16* b = p.b;
  for (std::int64_t first = 0; first < p.columns; first += width, b += p.panel_step)
    act(first, std::min(width, p.columns - first), b);
}

// --- AVX512-BF16 ---------------------------------------------------------------------------------

#if POSENC_PAIRS

// A tile's sum is finished apart before c is added: every gemm16_pairs pairs, so that zeros before
// and behind change nothing.
template <int rows, int vectors>
[[gnu::target("avx512f,avx512bf16")]] void multiply_pairs(const Gemm16& p, const Pair16* a,
                                                          const Pair16* b, float* c) {
  __m512 sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = p.adds ? _mm512_loadu_ps(c + r * p.c_step + v * lanes) : _mm512_setzero_ps();
  }
  for (std::int64_t k = 0; k < p.depth; ++k, b += p.b_step) {
    __m512bh from[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      from[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * lanes));
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto x =
          reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[r * p.a_step + k])));
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], x, from[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(c + r * p.c_step + v * lanes, sum[r][v]);
  }
}

template <int rows>
void multiply_pair_rows(const Gemm16& p, std::int64_t row) {
  const Pair16* const a = p.a + row * p.a_step;
  each_panel(p, [&](std::int64_t first, std::int64_t columns, const Pair16* b) {
    float* c = p.c + row * p.c_step + first;
    std::int64_t left = columns;
    const auto part = [&]<int vectors>(std::integral_constant<int, vectors>) {
      constexpr std::int64_t width = vectors * lanes;
      for (; left >= width; left -= width, b += width, c += width)
        multiply_pairs<rows, vectors>(p, a, b, c);
    };
    part(std::integral_constant<int, 4>());
    part(std::integral_constant<int, 2>());
    part(std::integral_constant<int, 1>());
  });
}

void multiply_by_pairs(const Gemm16& p) {
  std::int64_t row = 0;
  for (; row + 6 <= p.rows; row += 6) multiply_pair_rows<6>(p, row);
  for (; row + 2 <= p.rows; row += 2) multiply_pair_rows<2>(p, row);
  if (row < p.rows) multiply_pair_rows<1>(p, row);
}

bool has_pairs() {
  constexpr unsigned saves = 1u << 27, avx512f = 1u << 16, bf16 = 1u << 5;
  constexpr unsigned vectors = 0xe6;  // XMM, YMM, masks and ZMM, which the system keeps
  if ((CpuidLeaf(1, 0).c & saves) == 0 || CpuidLeaf(7, 0).a < 1) return false;
  unsigned kept = 0, upper = 0;
  __asm__("xgetbv" : "=a"(kept), "=d"(upper) : "c"(0));
  return (kept & vectors) == vectors && (CpuidLeaf(7, 0).b & avx512f) != 0 &&
         (CpuidLeaf(7, 1).a & bf16) != 0;
}

#endif

// --- AMX -----------------------------------------------------------------------------------------

#if POSENC_TILES

// Palette 1: eight tiles of 16 rows of 64 bytes.
struct TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);
constexpr TileShapes whole_tiles;

constexpr std::int64_t tile_bytes = 64, tile_pairs = tile_bytes / sizeof(Pair16);

// Sums stand in tiles 0 to 3, a in 4 and 5, b in 6 and 7. Each tile of a product's factors is read
// once for two of the sums.
[[gnu::target("amx-tile,amx-bf16")]] void multiply_two_by_two(const Gemm16& p, const Pair16* a,
                                                              const Pair16* b, float* c) {
  const std::int64_t a_step = p.a_step * 4, b_step = p.b_step * 4, c_step = p.c_step * 4;
  float* const below = c + gemm16_rows * p.c_step;
  if (p.adds) {
    _tile_loadd(0, c, c_step);
    _tile_loadd(1, c + lanes, c_step);
    _tile_loadd(2, below, c_step);
    _tile_loadd(3, below + lanes, c_step);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t k = 0; k < p.depth; k += tile_pairs, a += tile_pairs) {
    _tile_loadd(6, b, b_step);
    _tile_loadd(4, a, a_step);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + lanes, b_step);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + gemm16_rows * p.a_step, a_step);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    b += tile_pairs * p.b_step;
  }
  _tile_stored(0, c, c_step);
  _tile_stored(1, c + lanes, c_step);
  _tile_stored(2, below, c_step);
  _tile_stored(3, below + lanes, c_step);
}

// One row of four tiles.
[[gnu::target("amx-tile,amx-bf16")]] void multiply_one_by_four(const Gemm16& p, const Pair16* a,
                                                               const Pair16* b, float* c) {
  const std::int64_t a_step = p.a_step * 4, b_step = p.b_step * 4, c_step = p.c_step * 4;
  if (p.adds) {
    _tile_loadd(0, c, c_step);
    _tile_loadd(1, c + lanes, c_step);
    _tile_loadd(2, c + 2 * lanes, c_step);
    _tile_loadd(3, c + 3 * lanes, c_step);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t k = 0; k < p.depth; k += tile_pairs, a += tile_pairs) {
    _tile_loadd(4, a, a_step);
    _tile_loadd(5, b, b_step);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, b + lanes, b_step);
    _tile_dpbf16ps(1, 4, 6);
    _tile_loadd(7, b + 2 * lanes, b_step);
    _tile_dpbf16ps(2, 4, 7);
    _tile_loadd(5, b + 3 * lanes, b_step);
    _tile_dpbf16ps(3, 4, 5);
    b += tile_pairs * p.b_step;
  }
  _tile_stored(0, c, c_step);
  _tile_stored(1, c + lanes, c_step);
  _tile_stored(2, c + 2 * lanes, c_step);
  _tile_stored(3, c + 3 * lanes, c_step);
}

[[gnu::target("amx-tile,amx-bf16")]] void multiply_one(const Gemm16& p, const Pair16* a,
                                                       const Pair16* b, float* c) {
  const std::int64_t a_step = p.a_step * 4, b_step = p.b_step * 4, c_step = p.c_step * 4;
  if (p.adds)
    _tile_loadd(0, c, c_step);
  else
    _tile_zero(0);
  for (std::int64_t k = 0; k < p.depth; k += tile_pairs, a += tile_pairs) {
    _tile_loadd(4, a, a_step);
    _tile_loadd(6, b, b_step);
    _tile_dpbf16ps(0, 4, 6);
    b += tile_pairs * p.b_step;
  }
  _tile_stored(0, c, c_step);
}

[[gnu::target("amx-tile")]] void begin_tiles() { _tile_loadconfig(&whole_tiles); }
[[gnu::target("amx-tile")]] void end_tiles() { _tile_release(); }

void multiply_by_tiles(const Gemm16& p) {
  begin_tiles();
  const std::int64_t rows = (p.rows + gemm16_rows - 1) / gemm16_rows * gemm16_rows;
  for (std::int64_t row = 0; row < rows;) {
    const bool two = row + 2 * gemm16_rows <= rows;
    each_panel(p, [&](std::int64_t first, std::int64_t columns, const Pair16* b) {
      const Pair16* const a = p.a + row * p.a_step;
      float* c = p.c + row * p.c_step + first;
      const std::int64_t width = two ? 2 * lanes : 4 * lanes;
      for (; columns >= width; columns -= width, b += width, c += width)
        two ? multiply_two_by_two(p, a, b, c) : multiply_one_by_four(p, a, b, c);
      for (; columns > 0; columns -= lanes, b += lanes, c += lanes) {
        multiply_one(p, a, b, c);
        if (two) multiply_one(p, a + gemm16_rows * p.a_step, b, c + gemm16_rows * p.c_step);
      }
    });
    row += two ? 2 * gemm16_rows : gemm16_rows;
  }
  end_tiles();
}

// The processor has them, the system keeps them, and gives them to this process.
bool has_tiles() {
  static const bool found = [] {
    if (!has_pairs()) return false;  // which round what tiles multiply
    constexpr unsigned bf16 = 1u << 22, tile = 1u << 24;
    if ((CpuidLeaf(7, 0).d & bf16) == 0 || (CpuidLeaf(7, 0).d & tile) == 0) return false;
    constexpr int ask_for_state = 0x1023,
                  tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, ask_for_state, tile_data) == 0;
  }();
  return found;
}

#endif

// --- NEON's bfmmla -------------------------------------------------------------------------------

#if POSENC_QUADS

#define POSENC_BF16 [[gnu::target("arch=armv8.2-a+bf16")]]

// Two pairs of rows by sixteen columns: each sum is a square of two rows by two columns.
template <int row_pairs>
POSENC_BF16 void multiply_quads(const Gemm16& p, const Pair16* a, const Pair16* b, float* c) {
  constexpr int squares = lanes / 2;
  float32x4_t sum[row_pairs][squares];
  for (int r = 0; r < row_pairs; ++r) {
    float* const row = c + 2 * r * p.c_step;
    for (int s = 0; s < squares; ++s)
      sum[r][s] = p.adds ? vcombine_f32(vld1_f32(row + 2 * s), vld1_f32(row + p.c_step + 2 * s))
                         : vdupq_n_f32(0);
  }
  for (std::int64_t k = 0; k < p.depth; k += 2, b += 2 * p.b_step) {
    bfloat16x8_t from[squares];
    for (int s = 0; s < squares; s += 2) {
      const uint32x4_t first = vld1q_u32(b + 2 * s), second = vld1q_u32(b + p.b_step + 2 * s);
      from[s] = vreinterpretq_bf16_u32(vzip1q_u32(first, second));
      from[s + 1] = vreinterpretq_bf16_u32(vzip2q_u32(first, second));
    }
    for (int r = 0; r < row_pairs; ++r) {
      const Pair16* const row = a + 2 * r * p.a_step + k;
      const bfloat16x8_t x =
          vreinterpretq_bf16_u32(vcombine_u32(vld1_u32(row), vld1_u32(row + p.a_step)));
      for (int s = 0; s < squares; ++s) sum[r][s] = vbfmmlaq_f32(sum[r][s], x, from[s]);
    }
  }
  for (int r = 0; r < row_pairs; ++r) {
    float* const row = c + 2 * r * p.c_step;
    for (int s = 0; s < squares; ++s) {
      vst1_f32(row + 2 * s, vget_low_f32(sum[r][s]));
      vst1_f32(row + p.c_step + 2 * s, vget_high_f32(sum[r][s]));
    }
  }
}

#undef POSENC_BF16

void multiply_by_quads(const Gemm16& p) {
  for (std::int64_t row = 0; row < p.rows; row += 4) {
    each_panel(p, [&](std::int64_t first, std::int64_t columns, const Pair16* b) {
      const Pair16* const a = p.a + row * p.a_step;
      float* const c = p.c + row * p.c_step + first;
      for (std::int64_t column = 0; column < columns; column += lanes)
        multiply_quads<2>(p, a, b + column, c + column);
    });
  }
}

bool has_quads() {
#ifdef __linux__
  constexpr unsigned long bf16 = 1ul << 14;  // HWCAP2_BF16
  return (getauxval(AT_HWCAP2) & bf16) != 0;
#else
  int present = 0;
  std::size_t size = sizeof present;
  return sysctlbyname("hw.optional.arm.FEAT_BF16", &present, &size, nullptr, 0) == 0 && present;
#endif
}

#endif

// --- plain loops, for tests --------------------------------------------------------------------

void multiply_plainly(const Gemm16& p) {
  const auto number = [](Pair16 pair, bool later) {
    return std::bit_cast<float>(later ? pair & 0xffff0000u : pair << 16);
  };
  each_panel(p, [&](std::int64_t first, std::int64_t columns, const Pair16* b) {
    for (std::int64_t row = 0; row < p.rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        float& c = p.c[row * p.c_step + first + column];
        float sum = p.adds ? c : 0;
        for (std::int64_t k = 0; k < p.depth; ++k) {
          const Pair16 x = p.a[row * p.a_step + k], y = b[k * p.b_step + column];
          for (const bool later : {false, true}) sum += number(x, later) * number(y, later);
        }
        c = sum;
      }
    }
  });
}

struct Way {
  Products16 products;
  bool (*present)();
  void (*multiply)(const Gemm16&);
};
constexpr auto ways = std::to_array<Way>({
#if POSENC_TILES
    {Products16::tiles, has_tiles, multiply_by_tiles},
#endif
#if POSENC_PAIRS
    {Products16::pairs, has_pairs, multiply_by_pairs},
#endif
#if POSENC_QUADS
    {Products16::quads, has_quads, multiply_by_quads},
#endif
    {Products16::none, [] { return true; }, multiply_plainly},
});

std::atomic<const Way*> chosen = nullptr;  // null: not yet

const Way& way() {
  const Way* now = chosen.load(std::memory_order_relaxed);
  if (now == nullptr) {
    now = &*std::ranges::find_if(ways, [](const Way& each) { return each.present(); });
    chosen.store(now, std::memory_order_relaxed);
  }
  return *now;
}

}  // namespace

std::string_view name(Products16 products) {
  switch (products) {
    case Products16::none: break;
    case Products16::pairs: return "AVX512-BF16";
    case Products16::tiles: return "AMX";
    case Products16::quads: return "NEON bfmmla";
  }
  return "none";
}

std::vector<Products16> products16() {
  std::vector<Products16> found;
  for (const Way& each : ways)
    if (each.present()) found.push_back(each.products);
  return found;
}

Products16 chosen_products16() { return way().products; }

void use_products16(Products16 products) {
  chosen = &*std::ranges::find(ways, products, &Way::products);
}

void gemm16(const Gemm16& product) { way().multiply(product); }

}  // namespace posenc::detail
