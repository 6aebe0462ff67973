// Names of layouts and of what travels, and the words of `--cp`.
#include "src/context_parallel/sharding.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/core/edit_distance.h"
#include "src/core/small_letters.h"
#include "src/core/try.h"
#include "src/text/number.h"

namespace posenc::layout {
namespace {

constexpr std::int64_t most_ranks = 65536;

struct Named {
  std::string_view name;
  Order order;
  Exchange exchange;
};
constexpr Named layouts[] = {
    {"contiguous", Order::contiguous, Exchange::keys},
    {"zigzag", Order::zigzag, Exchange::keys},
    {"head_tail", Order::zigzag, Exchange::keys},
    {"headtail", Order::zigzag, Exchange::keys},
    {"round_robin", Order::round_robin, Exchange::keys},
    {"striped", Order::round_robin, Exchange::keys},
    {"stripe", Order::round_robin, Exchange::keys},
    {"interleave", Order::round_robin, Exchange::keys},
    {"interleaved", Order::round_robin, Exchange::keys},
    {"balanced", Order::balanced, Exchange::keys},
    {"ptrr", Order::balanced, Exchange::keys},
    {"ulysses", Order::contiguous, Exchange::heads},
    {"heads", Order::contiguous, Exchange::heads},
    {"a2a", Order::contiguous, Exchange::heads},
    {"ring+heads", Order::zigzag, Exchange::ring_and_heads},
    {"usp", Order::zigzag, Exchange::ring_and_heads},
    {"a2a+p2p", Order::zigzag, Exchange::ring_and_heads},
    {"decode", Order::round_robin, Exchange::cache},
    {"dcp", Order::round_robin, Exchange::cache},
};

struct EngineName {
  std::string_view word, engine;
};
constexpr EngineName engine_names[] = {
    {"megatron", "megatron-core"},
    {"megatron-lm", "megatron-core"},
    {"megatron-core", "megatron-core"},
    {"torchtitan", "torch"},
    {"torch", "torch"},
    {"accelerate", "accelerate"},
    {"transformers", "accelerate"},
    {"trl", "accelerate"},
    {"verl", "verl"},
    {"slime", "slime"},
    {"miles", "slime"},
    {"vllm", "vllm"},
    {"sglang", "sglang"},
    {"deepspeed", "deepspeed"},
    {"ring-flash-attention", "ring-flash-attention"},
    {"ring_flash_attn", "ring-flash-attention"},
    {"axolotl", "axolotl"},
    {"nemo-rl", "nemo-rl"},
};

// Dashes are underscores here, as in engines' own flags.
std::string spelled(std::string_view word) {
  std::string out = posenc::detail::small_letters(word);
  std::ranges::replace(out, '-', '_');
  return out;
}

Expected<std::int64_t> number(std::string_view what, std::string_view text) {
  if (const auto value = posenc::detail::whole_number(text)) return *value;
  return fail(detail::where, std::string(what) + " must be a number", text,
              "write it as in zigzag:8");
}

template <class Enum>
Expected<Enum> by_name(std::string_view what, std::string_view text,
                       std::initializer_list<Enum> all) {
  std::vector<std::string_view> names;
  for (const Enum one : all) {
    names.push_back(name(one));
    if (spelled(name(one)) == spelled(text)) return one;
  }
  return fail(detail::where, std::string(what) + " must be one of its words", text,
              suggestion(text, names));
}

}  // namespace

std::string_view name(Order order) {
  constexpr std::string_view names[] = {"contiguous", "zigzag", "round_robin", "balanced"};
  return names[static_cast<std::size_t>(order)];
}
std::string_view name(Exchange exchange) {
  constexpr std::string_view names[] = {"keys", "ring", "gather", "heads", "ring+heads", "cache"};
  return names[static_cast<std::size_t>(exchange)];
}
std::string_view name(Verdict verdict) {
  constexpr std::string_view names[] = {"survives", "unknown", "breaks"};
  return names[static_cast<std::size_t>(verdict)];
}
std::string_view name(Basis basis) {
  constexpr std::string_view names[] = {"layout", "engine"};
  return names[static_cast<std::size_t>(basis)];
}

std::string Sharding::text() const {
  const auto with = [](std::string_view key, std::string_view value) {
    return ":" + std::string(key) + "=" + std::string(value);
  };
  const std::string count = ":" + std::to_string(ranks);
  std::string out;
  Order usual = order;
  switch (exchange) {
    case Exchange::heads:
      out = "ulysses" + count;
      usual = Order::contiguous;
      break;
    case Exchange::ring_and_heads:
      out = "ring+heads" + count + with("heads", std::to_string(head_ranks));
      usual = Order::zigzag;
      break;
    case Exchange::cache: out = "decode" + count; break;
    default: out = std::string(name(order)) + count;
  }
  if (order != usual) out += with("order", name(order));
  const bool in_blocks = order == Order::round_robin || order == Order::balanced;
  if (in_blocks && block > 1) out += with("block", std::to_string(block));
  if (exchange == Exchange::ring || exchange == Exchange::gather) out += with("by", name(exchange));
  if (!engine.empty()) out += with("engine", engine);
  return out;
}

namespace detail {

std::string_view engine_named(std::string_view word) {
  const std::string wanted = spelled(word);
  for (const EngineName& one : engine_names)
    if (spelled(one.word) == wanted) return one.engine;
  return {};
}

Sharding of_engine(std::string_view engine) {
  Sharding out{.engine = std::string(engine)};
  // torch's context_parallel balances by head and tail, and gathers; TransformerEngine's ring is
  // zigzag; SGLang's default is its round robin; vLLM is known for its cache.
  if (engine == "torch" || engine == "accelerate" || engine == "nemo-rl") {
    out.order = Order::zigzag;
    out.exchange = Exchange::gather;
  } else if (engine == "megatron-core" || engine == "slime" || engine == "ring-flash-attention") {
    out.order = Order::zigzag;
    out.exchange = Exchange::ring;
  } else if (engine == "axolotl") {
    out.exchange = Exchange::gather;  // varlen_llama3
  } else if (engine == "sglang") {
    out.order = Order::round_robin;
    out.exchange = Exchange::gather;
  } else if (engine == "vllm") {
    out.order = Order::round_robin;
    out.exchange = Exchange::cache;
  } else if (engine == "deepspeed" || engine == "verl") {
    out.exchange = Exchange::heads;
  }
  return out;
}

Expected<Sharding> checked(Sharding sharding) {
  if (sharding.ranks < 1 || sharding.ranks > most_ranks)
    return fail(where, "ranks must be 1 to 65536", std::to_string(sharding.ranks));
  if (sharding.exchange == Exchange::heads) sharding.head_ranks = sharding.ranks;
  if (sharding.head_ranks < 1 || sharding.ranks % sharding.head_ranks != 0)
    return fail(where, "ranks that share out heads must divide all ranks",
                std::to_string(sharding.head_ranks) + " of " + std::to_string(sharding.ranks),
                "write ring+heads:8:heads=2");
  if (sharding.block < 0 || (sharding.block == 0 && sharding.order != Order::balanced))
    return fail(where, "a block must have 1 token or more", std::to_string(sharding.block));
  return sharding;
}

Expected<Sharding> read_words(std::string_view text) {
  Sharding out;
  bool first = true, counted = false;
  while (!text.empty() || first) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view word = text.substr(0, colon);
    text.remove_prefix(std::min(colon + 1, text.size()));
    if (first) {
      first = false;
      const auto layout = std::ranges::find(layouts, spelled(word), &Named::name);
      if (layout != std::end(layouts)) {
        out.order = layout->order;
        out.exchange = layout->exchange;
        if (out.order == Order::balanced) out.block = 0;
        continue;
      }
      const std::string_view engine = engine_named(word);
      if (engine.empty()) {
        std::vector<std::string_view> names;
        for (const Named& one : layouts) names.push_back(one.name);
        for (const EngineName& one : engine_names) names.push_back(one.word);
        const std::string near = suggestion(word, names);
        return fail(where, "there must be a layout or an engine of that name", word,
                    near.empty() ? "write contiguous:8, zigzag:8, round_robin:8:block=64, "
                                   "ulysses:8, ring+heads:8:heads=2, decode:8, megatron:8, or a "
                                   "job's command line"
                                 : near);
      }
      out = of_engine(engine);
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == word.npos) {
      POSENC_TRY(ranks, number("the number of ranks", word));
      out.ranks = ranks;
      counted = true;
      continue;
    }
    const std::string key = spelled(word.substr(0, equals));
    const std::string_view value = word.substr(equals + 1);
    if (key == "block") {
      POSENC_TRY(block, number("a block", value));
      out.block = block;
    } else if (key == "heads") {
      POSENC_TRY(heads, number("heads", value));
      out.head_ranks = heads;
    } else if (key == "by") {
      POSENC_TRY(
          by, by_name<Exchange>("by", value, {Exchange::ring, Exchange::gather, Exchange::heads}));
      out.exchange = by;
    } else if (key == "order") {
      POSENC_TRY(order, by_name<Order>("order", value,
                                       {Order::contiguous, Order::zigzag, Order::round_robin,
                                        Order::balanced}));
      out.order = order;
    } else if (key == "engine") {
      const std::string_view engine = engine_named(value);
      if (engine.empty())
        return fail(where, "engine must be one whose layouts are known", value,
                    "drop it, or write megatron, torch, accelerate, verl, slime, vllm, sglang, "
                    "deepspeed, ring-flash-attention, axolotl or nemo-rl");
      out.engine = engine;
    } else {
      constexpr std::string_view options[] = {"block", "heads", "by", "order", "engine"};
      return fail(where, "an option must be block, heads, by, order or engine", word,
                  suggestion(key, options));
    }
  }
  if (!counted)
    return fail(where, "the number of ranks must stand behind the layout", out.text(),
                "write zigzag:8");
  return checked(std::move(out));
}

Expected<Layout> layout_of(const Sharding& sharding, std::int64_t length, const Mask& mask) {
  const std::int64_t ranks = sharding.ranks / sharding.head_ranks;
  switch (sharding.order) {
    case Order::contiguous: return Layout::contiguous(length, ranks);
    case Order::zigzag: return Layout::zigzag(length, ranks);
    case Order::round_robin: return Layout::striped(length, ranks, sharding.block);
    case Order::balanced: break;
  }
  constexpr std::int64_t longest = std::int64_t{1} << 24;
  if (length > longest)
    return fail(where, "a balanced order is counted up to 2^24 tokens", std::to_string(length));
  const std::int64_t bounds[] = {0, length};
  return Layout::balanced(bounds, ranks, mask, sharding.block);
}

}  // namespace detail
}  // namespace posenc::layout
