// Which ways of sharing a text out among machines (ranks) a model survives, told from its files and
// the layout alone, before a job starts: `posenc lint --cp`.
//
// A verdict assumes that a rank computes each layer from its own tokens and from what the exchange
// hands it, which is keys and values, or heads; that ids and masks are those of the whole text; and
// that parts merge by the logarithms of their sums. So does backends/distributed, and so does
// judge_test.cc, which runs each kind of layer. Then
//
//   survives   the output is that of one rank
//   breaks     what the layer reads is not there, or in another order (Basis::layout); or the engine
//              that is named computes it wrongly or refuses it (Basis::engine, with the report)
//   unknown    something besides keys and values must travel or be put in order (states, what an
//              indexer picks), which some engines do and others do not
//
// What an engine must keep for a layer that survives stands in `needs`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/layout.h"
#include "posenc/model.h"

namespace [[gnu::visibility("default")]] posenc {
namespace layout {

// Which tokens a rank holds (posenc/layout.h).
enum class Order {
  contiguous,   // one run
  zigzag,       // chunks r and 2·ranks − 1 − r (head and tail)
  round_robin,  // blocks r, r + ranks, … (stripes; interleaved)
  balanced,     // blocks by counted pairs (PTRR)
};
std::string_view name(Order order);

// What travels.
enum class Exchange {
  keys,            // keys and values reach the queries of all ranks, block by block or gathered
  ring,            // the same, one block at a time
  gather,          // the same, all of them first
  heads,           // tokens become heads and heads tokens again (Ulysses)
  ring_and_heads,  // heads among `head_ranks` neighbours, a ring over the others
  cache,           // of decoding: the cache is shared out, and every rank has the new tokens
};
std::string_view name(Exchange exchange);

// A text shared out among ranks.
struct Sharding {
  Order order = Order::contiguous;
  Exchange exchange = Exchange::keys;
  std::int64_t ranks = 1;
  std::int64_t head_ranks = 1;         // among which heads are dealt out
  std::int64_t block = 1;              // of round_robin and balanced, in tokens; 0: balanced's own
  std::string engine = {};             // whose: "megatron-core", "sglang" …; "" where none is named
  std::vector<std::string> said = {};  // what it was read from: "context_parallel_size 8"

  std::string text() const;  // "zigzag:8", "round_robin:4:block=64", "ring+heads:8:heads=2"
  bool operator==(const Sharding&) const = default;
};

// Reads "zigzag:8", "contiguous:16", "round_robin:4:block=64", "balanced:8", "ulysses:8",
// "ring+heads:8:heads=2", "decode:4:block=16" (and their other names), each with "by=ring" or
// "by=gather", "order=" and "engine=" behind; an engine's own layout by its name ("megatron:8"); or
// what starts a job: a command line, YAML, TOML or JSON with the words of torchtitan, Megatron-LM,
// verl, slime, vLLM, SGLang, DeepSpeed, accelerate, axolotl, ring-flash-attention and their kin.
// Errors: no such layout, ranks outside 1 to 65536, head_ranks that do not divide them, a text that
// shares nothing out.
Expected<Sharding> read_sharding(std::string_view text);
// Those of a command line or of settings; empty where they share no text out. One entry for each:
// vLLM shares out prefill and decoding apart. Errors: numbers outside the ranges above.
Expected<std::vector<Sharding>> shardings_of(std::string_view text);

enum class Verdict { survives, unknown, breaks };  // from best to worst
std::string_view name(Verdict verdict);

// What a reason follows from.
enum class Basis {
  layout,  // who holds what, whatever the engine
  engine,  // how an engine computes it
};
std::string_view name(Basis basis);

// Why a group of layers does not simply survive.
struct Reason {
  std::string code = {};  // "compressed_keys", "heads" … (docs/codes.md has each, as cp_CODE)
  Verdict verdict = Verdict::unknown;
  Basis basis = Basis::layout;
  std::string why = {};     // a sentence
  std::string cure = {};    // what to write instead
  std::string source = {};  // where it was met: "verl#7221"; "" where it follows by itself
};

// What holds for some layers.
struct GroupVerdict {
  Stack stack = Stack::text;
  std::vector<std::int64_t> layers = {};
  std::string label = {};
  Verdict verdict = Verdict::survives;
  std::vector<Reason> reasons = {};     // the gravest first
  std::vector<std::string> needs = {};  // what an engine must keep, as sentences
  // [rank], pairs of a query and a key that it sees which a rank computes in a layer, for each of
  // its `heads`: counted, by formulas that take no step a token. Empty: no attention, or sizes that
  // the file does not say.
  std::vector<std::int64_t> pairs = {};
  double heads = 0;    // query heads of a rank
  double balance = 1;  // the mean of pairs over their largest
  // What a rank sends in the forward pass of a layer, on the mean of all ranks: the keys and values
  // that queries elsewhere may see, or heads there and back; of decoding, for each new token.
  std::int64_t bytes = 0;
};

// What attention of a rank does a second, and what travels between ranks. Neighbours in runs of
// `near_ranks` are joined by a faster way than the others.
struct Machine {
  std::string name = {};
  double flops = 0;                       // operations in attention that are reached, not promised
  double memory = 0;                      // bytes a second, where parts are merged
  std::int64_t near_ranks = 1;            // of a node
  double near_bytes = 0, near_delay = 0;  // bytes a second that a rank sends within it; seconds
  double far_bytes = 0, far_delay = 0;    // to other nodes
};
// "h100", "a100", "core": their numbers are assumptions, which docs/context_parallel.md names.
std::span<const Machine> machines();
// One of them by its name, with other numbers behind it: "h100:flops=6e14:far_bytes=2.5e10". Errors:
// no such machine, no such number, one that is not above 0.
Expected<Machine> read_machine(std::string_view text);

// The layout that suits this model at this length.
struct Best {
  std::string layout = {};  // Sharding::text()
  Verdict verdict = Verdict::survives;
  double balance = 1;
  std::int64_t bytes = 0;  // of all layers
  double seconds = 0;      // predicted, as those of Judgement
  std::string why = {};    // a sentence
};

// What a layout does to a model.
struct Judgement {
  Sharding sharding = {};
  std::int64_t length = 0;
  Verdict verdict = Verdict::survives;  // the worst of its groups
  std::vector<GroupVerdict> groups = {};
  std::vector<double> work = {};  // [rank], pairs of all layers and heads
  double balance = 1;             // the mean of it over its largest
  std::int64_t bytes = 0;         // that a rank sends in all layers, forward
  // Predicted for a machine: attention of all layers, forward, messages and merging with it; what is
  // not attention is shared out evenly in any layout, and not counted. `efficiency`: the time that
  // one rank would take, of all ranks' time. Both 0 where nothing is counted, and of decoding.
  Machine machine = {};
  double seconds = 0, efficiency = 0;
  Best best = {};
};
// {"layout", "ranks", "verdict", "groups", "best", …} (docs/json.md).
std::string to_json(const Judgement& judgement);

// What judge() is asked for.
struct JudgeOptions {
  std::int64_t length = 0;  // of the whole text, tokens; 0: the model's context
  Machine machine = machines().front();
};

// Group by group of the stacks that read text (towers run whole on each rank). Takes milliseconds.
// Errors: no length, one above 2^30, a balanced order above 2^24 tokens, those of Layout.
Expected<Judgement> judge(const Model& model, const Sharding& given,
                          const JudgeOptions& options = {});

}  // namespace layout
}  // namespace posenc
