// What is known of engines, each with the place where it was met: read in their sources, or told by
// their threads. A row overrides the reason of its code that would follow from the layout.
#include <algorithm>
#include <string>
#include <utility>

#include "src/context_parallel/reasons.h"

namespace posenc::layout::detail {
namespace {

// Sets of orders and exchanges; empty: all.
constexpr unsigned of(Order order) { return 1u << static_cast<unsigned>(order); }
constexpr unsigned of(Exchange exchange) { return 1u << static_cast<unsigned>(exchange); }
constexpr unsigned all = 0;
constexpr unsigned rings = of(Exchange::ring) | of(Exchange::ring_and_heads);

struct Fact {
  std::string_view engine, code;
  Feature feature;
  unsigned orders, exchanges;
  Verdict verdict;
  std::string_view why, cure, source;
};

constexpr std::string_view slots_of_vllm =
    "vLLM keeps the cache of such layers whole on each rank; versions whose slots are those of a "
    "share for every group write it to wrong places, without an error";

constexpr Fact facts[] = {
    // TransformerEngine's attention over ranks (context_parallel.py, dot_product_attention/utils.py).
    {"megatron-core", "window_refused", Feature::window, all, rings, Verdict::breaks,
     "TransformerEngine takes windows over ranks with cp_comm_type a2a or all_gather alone, and "
     "stops at a ring (p2p)",
     "--cp-comm-type a2a, or all_gather", "TransformerEngine: context_parallel.py"},
    {"megatron-core", "sinks_refused", Feature::sinks, all,
     rings | of(Exchange::gather) | of(Exchange::keys), Verdict::breaks,
     "TransformerEngine takes a learned sink (softmax_type) over ranks with cp_comm_type a2a alone",
     "--cp-comm-type a2a", "TransformerEngine: context_parallel.py"},
    {"megatron-core", "bias_refused", Feature::bias, all, all, Verdict::breaks,
     "TransformerEngine has no ALiBi over ranks: a kernel cannot be told how far a block of keys "
     "is",
     "no context parallelism with this model there", "TransformerEngine#1046"},
    {"megatron-core", "states", Feature::recurrent, of(Order::zigzag), all, Verdict::survives,
     "Megatron-LM puts zigzag parts in order inside these layers, by heads", "",
     "Megatron-LM#2614"},
    {"slime", "window_refused", Feature::window, all, rings, Verdict::breaks,
     "it trains by Megatron-LM: TransformerEngine takes windows over ranks with cp_comm_type a2a "
     "or "
     "all_gather alone",
     "--cp-comm-type a2a", "TransformerEngine: context_parallel.py"},
    {"slime", "order_scrambled", Feature::not_picked, of(Order::contiguous), of(Exchange::gather),
     Verdict::breaks,
     "--allgather-cp deals out one run a rank, and layers without an indexer put parts together as "
     "if they were zigzag: wrong without an error; since slime#1891 it is refused",
     "drop --allgather-cp", "slime#1871"},
    {"verl", "compressed_keys", Feature::compressed, of(Order::zigzag), all, Verdict::unknown,
     "verl deals out such models contiguously by itself since verl#7221; before, zigzag gave wrong "
     "attention without an error",
     "verl with #7221 and #7297", "verl#7221"},
    {"accelerate", "window_refused", Feature::window, all, all, Verdict::breaks,
     "accelerate refuses context parallelism for layers that slide", "another engine",
     "accelerate#4177"},
    {"accelerate", "chunk_refused", Feature::chunk, all, all, Verdict::breaks,
     "accelerate refuses context parallelism for layers in chunks", "another engine",
     "accelerate#4177"},
    {"accelerate", "states", Feature::recurrent, all, all, Verdict::breaks,
     "accelerate refuses it: before, each rank began its state anew, and gradients were wrong "
     "while "
     "the loss looked right",
     "another engine", "accelerate#4177"},
    {"ring-flash-attention", "window_refused", Feature::window, all, all, Verdict::breaks,
     "its rings take no window", "posenc's ring, or an exchange of heads",
     "ring-flash-attention: README"},
    {"ring-flash-attention", "bias_refused", Feature::bias, all, all, Verdict::breaks,
     "its rings take no ALiBi", "posenc's ring, or an exchange of heads",
     "ring-flash-attention: README"},
    {"sglang", "indexer", Feature::picked, of(Order::zigzag), all, Verdict::breaks,
     "SGLang refuses zigzag for models whose indexer picks single tokens",
     "--cp-strategy interleave", "sglang: test_server_args.py"},
    {"sglang", "indexer", Feature::picked, of(Order::round_robin), of(Exchange::gather),
     Verdict::unknown,
     "SGLang's round robin hands ids of the text to flashmla backends; where the backend itself "
     "rotates (trtllm, fp8 keys on Blackwell) it took wrong ones",
     "--attention-backend with flashmla_sparse, or no context parallelism on such GPUs",
     "sglang#28463"},
    {"sglang", "compressed_keys", Feature::compressed, of(Order::round_robin), of(Exchange::gather),
     Verdict::survives, "SGLang gathers what its compressor reads before it compresses", "",
     "sglang: --cp-strategy interleave with --attention-backend dsv4"},
    {"vllm", "window_slots", Feature::window, all, of(Exchange::cache), Verdict::unknown,
     slots_of_vllm, "a version with vllm#57260's correction", "vllm#57260"},
    {"vllm", "chunk_slots", Feature::chunk, all, of(Exchange::cache), Verdict::unknown,
     slots_of_vllm, "a version with vllm#57260's correction", "vllm#57260"},
};

bool matches(const Fact& fact, const Case& one) {
  const auto within = [](unsigned set, unsigned member) {
    return set == all || (set & member) != 0;
  };
  return fact.engine == one.sharding.engine && within(fact.orders, of(one.sharding.order)) &&
         within(fact.exchanges, of(one.sharding.exchange)) && has(one, fact.feature);
}

}  // namespace

bool has(const Case& one, Feature feature) {
  const LayerGroup& group = one.group;
  const bool attends = one.is_attention();
  switch (feature) {
    case Feature::any: return true;
    case Feature::window:
      return attends && one.windowed() && !group.chunked && group.compressed == 0;
    case Feature::chunk: return attends && one.windowed() && group.chunked;
    case Feature::sinks: return attends && group.sink_logits;
    case Feature::bias: return attends && one.plan.bias.has_value();
    case Feature::recurrent:
      return group.mixer == Mixer::recurrence || group.mixer == Mixer::convolution;
    case Feature::compressed: return group.compressed > 0;
    case Feature::picked: return group.picked.has_value();
    case Feature::not_picked: break;
  }
  return attends && !group.picked && group.compressed == 0;
}

void add_facts(const Case& one, std::vector<Reason>& reasons) {
  for (const Fact& fact : facts) {
    if (!matches(fact, one)) continue;
    std::erase_if(reasons, [&](const Reason& old) { return old.code == fact.code; });
    reasons.push_back({std::string(fact.code), fact.verdict, Basis::engine, std::string(fact.why),
                       std::string(fact.cure), std::string(fact.source)});
  }
}

}  // namespace posenc::layout::detail
