// How fast the kernels are beside what the memory of this machine allows. The limit is measured in
// the same run on the same buffer, in turns with the kernel, so that ratios mean something where
// seconds do not. One thread is timed by its own processor time, several by the clock. It is the
// library posenc::bench (-lposenc_bench), which stands on posenc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"
#include "posenc/plan.h"
#include "posenc/tensor.h"

namespace posenc {

enum class BenchOp { rotate, rekey, add, table };
constexpr std::string_view name(BenchOp op) {
  constexpr std::string_view names[] = {"rotate", "rekey", "add", "table"};
  return names[static_cast<std::size_t>(op)];
}

// One thing to measure. All work in place on memory in the order [seq, heads, head_dim], as a
// projection leaves it; add and table have vectors of heads · head_dim channels. rekey moves keys
// back by 1000 positions.
struct BenchCase {
  std::string name = "given";
  BenchOp op = BenchOp::rotate;
  DType dtype = DType::f32;
  // Of add and table: halves has all sines, then all cosines; interleaved sin, cos, sin, cos, ...
  Pairing pairing = Pairing::halves;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 0;  // rotate turns keys of so many heads in the same call; 0: no keys
  std::int64_t head_dim = 128;
  std::int64_t length = 4096;  // tokens
  int threads = 1;
  std::int64_t first_position = 0;
  bool decode = false;  // every token is a sequence of its own, at a random position below 131072
  double goal = 0;      // the ratio wanted; 0: none

  std::int64_t elements() const;
  std::int64_t working_set() const;  // bytes of memory that a run touches
  // Bytes read plus bytes written by a run. A table is only written.
  std::int64_t bytes() const;
};

// What ratios depend on; bench_machine() asks the system.
struct BenchMachine {
  std::string processor = {};
  std::string instruction_set = {};  // the one kernels use; "" without SIMD
  int processors = 1;
  std::int64_t last_level_cache = 0;  // bytes, as the system reports them, shared by all processors
  std::int64_t memory_available = 0;  // bytes
};
BenchMachine bench_machine();

// Kernels and their limits use this set of the machine's from now on ("AVX2"), as on a processor
// without the wider ones. Not while anything is computed. Errors: a set that it has not.
Expected<void> use_instruction_set(std::string_view name);

// Where a working set lives. From memory: at least four times the last-level cache, so that less
// than a quarter of it can be found there.
constexpr bool from_memory(std::int64_t working_set, const BenchMachine& machine) {
  return working_set >= 4 * machine.last_level_cache;
}

// The sweep: memory-bound, cache-resident, one head, decode, position 10 million, keys that move,
// tables and sums;
// all with so many threads, or, with 0, with one thread and a few of them with all processors. A
// quarter of the available memory is the most a case takes; one that would need more says "capped"
// in its name.
std::vector<BenchCase> bench_cases(const BenchMachine& machine, int threads = 0);

// How long a case is measured.
struct BenchEffort {
  int least_runs = 7;
  double seconds = 2;      // for one case, but for a run that takes longer
  double settled = 0.005;  // enough when the median ratio's relative standard error is below this
};

// A case with its times and those of its limit, measured in turns.
struct BenchRow {
  BenchCase what = {};
  bool ram = false;              // from_memory()
  double seconds = 0;            // median of the kernel's runs
  double limit_seconds = 0;      // of the limit's: scaling in place; of a table a plain fill, of
                                 // rekey a rotation
  int runs = 0;                  // of each
  std::int64_t peak_bytes = -1;  // by which the first run raised the memory in use; -1: not known

  double gbps() const { return static_cast<double>(what.bytes()) / seconds * 1e-9; }
  double limit_gbps() const { return static_cast<double>(what.bytes()) / limit_seconds * 1e-9; }
  double ratio() const { return limit_seconds / seconds; }
  bool below_goal() const { return what.goal > 0 && ratio() < what.goal; }
};

// Errors: sizes below 1 or with more bytes than there are available; those of compile and the
// kernel.
Expected<BenchRow> measure(const BenchCase& what, const BenchMachine& machine,
                           const BenchEffort& effort = {});

// What loops over memory chose by measurement in this process, a sentence each: a choice is made in
// the first calls that are large enough, and changes no number.
std::vector<std::string> bench_choices();

// What rows say together: how much faster several threads are than one, what position 10 million
// costs beside position 0, and how near 16-bit types from memory come to float32's limit in bytes.
struct BenchNote {
  std::string text = {};
  bool below_goal = false;
};
std::vector<BenchNote> bench_notes(std::span<const BenchRow> rows);

// --- attention -----------------------------------------------------------------------------------

// Causal attention with a scheme, its fields as by default, what it learns random.
struct AttendCase {
  std::string name = "given";
  // As make_scheme() or make_content_scheme() knows it; one of the first may have fields behind its
  // name, "rope theta=500000".
  std::string scheme = "nope";
  std::string softmax = {};  // "sinks", "softcap" or "temperature", beside the scheme; "": none
  std::int64_t heads = 16, kv_heads = 16, head_dim = 64;
  std::int64_t length = 4096;    // keys, and queries where it does not decode
  std::int64_t grid = 0;         // side of pictures, a sequence each, of length in all; 0: a text
  std::int64_t packed = 0;       // tokens of each of the texts that share a call, 0: one text
  bool page = false;             // words of a page, positions of three axes
  bool decode = false;           // one query, the last
  bool backward = false;         // the gradients by q, k and v instead
  std::int64_t long_length = 0;  // measured in turns with the same at this length, 0: with nothing
  DType dtype = DType::f32;
  std::optional<DType> cache_dtype = {};  // of keys and values, where it is another (8 bits)
  int threads = 1;

  std::int64_t visible_pairs() const {
    return grid > 0     ? length * grid * grid
           : page       ? length * length
           : packed > 0 ? length * (packed + 1) / 2
           : decode     ? length
                        : length * (length + 1) / 2;
  }
  std::int64_t cache_bytes() const;  // of keys and values
};

// Every scheme of attention at 4096 tokens (CoPE, stick-breaking, Wall, PaTH and GRAPE-AP at 2048),
// what else the softmax knows, decoding from a cache of 32768, gradients at 64 to 2048 tokens,
// biases of pictures, of windows and of a page beside the same without, and texts of 128 to 512
// beside one of 4096, alone and 4096 tokens of them in one call.
std::vector<AttendCase> attend_cases(int threads = 1);

// All measured in turns, in one run.
struct AttendRow {
  AttendCase what = {};
  double seconds = 0;
  double nope_seconds = 0;  // the same attention without position
  double read_seconds = 0;  // reading keys and values once
  // OpenBLAS' sgemm of [n × head_dim]·[head_dim × n], then [n × n]·[n × head_dim], for one head; n
  // is length, or 4096 where that is less. 0 where there is no OpenBLAS.
  double gemm_seconds = 0;
  std::int64_t gemm_length = 0;
  // Of bfloat16 on processors that multiply it: both products of 32 queries and 512 keys alone, so
  // often that there are gemm_length of each. 0 elsewhere.
  double gemm16_seconds = 0;
  std::int64_t peak_bytes = -1;  // by which the first run raised the memory in use; -1: not known
  double forward_seconds = 0;    // of a backward row: the same attention forwards
  double long_gflops = 0;        // of a row with a long_length: those at that length

  double of_forward() const { return seconds / forward_seconds; }
  double of_long() const { return gflops() / long_gflops; }
  double gflops() const;       // 4 · heads · head_dim · visible pairs a second; backwards 10
  double gemm_gflops() const;  // 0 where there is none
  double gemm_ratio() const { return gemm_seconds > 0 ? gflops() / gemm_gflops() : 0; }
  double gemm16_gflops() const;
  double gemm16_ratio() const { return gemm16_seconds > 0 ? gflops() / gemm16_gflops() : 0; }
  double overhead() const { return seconds / nope_seconds; }
};

// Errors: sizes below 1, heads that are no multiple of kv_heads, a scheme that has no place in
// attention, another word for softmax; those of compile and attend.
Expected<AttendRow> measure_attend(const AttendCase& what, const BenchMachine& machine,
                                   const BenchEffort& effort = {});

// docs/speed.md; one array, an object a row.
std::string to_json(std::span<const BenchRow> rows);
std::string to_json(std::span<const AttendRow> rows);

}  // namespace posenc
