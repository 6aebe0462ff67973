// How a text is shared out among ranks, in the words that start a job: flags of torchtitan
// (config/job_config.py), Megatron-LM (training/arguments.py), slime and miles (utils/arguments.py),
// vLLM (engine/arg_utils.py), SGLang (srt/server_args.py), and the YAML, TOML and JSON of verl,
// NeMo-RL, accelerate, DeepSpeed, axolotl, LLaMA-Factory's forks, ms-swift and OpenRLHF. A word is
// told by its last part: parallelism.context_parallel_degree is context_parallel_degree.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/context_parallel.h"
#include "src/context_parallel/sharding.h"
#include "src/core/try.h"
#include "src/text/number.h"
#include "src/tools/command_line.h"
#include "src/tools/settings.h"

namespace posenc::layout {
namespace {

struct Word {
  std::string key, value;  // "context_parallel_size", "8"
};

// The last part of a key, with underscores: of --cp-comm-type, +actor.context_parallel_size.
std::string last_part(std::string_view key) {
  key.remove_prefix(std::min(key.find_first_not_of("-+"), key.size()));
  key = key.substr(key.rfind('.') + 1);
  std::string out(key);
  std::ranges::replace(out, '-', '_');
  return out;
}

bool is_flag(std::string_view word) {
  return word.size() > 2 && word.starts_with('-') && !(word[1] >= '0' && word[1] <= '9');
}

// Words of a command line: --key value, --key=value, key=value; a flag alone is "true".
std::vector<Word> of_command(const std::vector<std::string>& words) {
  std::vector<Word> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::size_t equals = word.find('=');
    if (!is_flag(word) && (equals == word.npos || equals == 0)) continue;
    Word one{last_part(word.substr(0, equals)), "true"};
    if (equals != word.npos)
      one.value = word.substr(equals + 1);
    else
      for (bool first = true;
           i + 1 < words.size() && !is_flag(words[i + 1]) && words[i + 1] != "\n"; first = false) {
        if (!first && one.key != "hierarchical_context_parallel_sizes") break;
        one.value = first ? words[i + 1] : one.value + " " + words[i + 1];
        ++i;
      }
    if (one.key == "dcp" || one.key == "pcp" || one.key == "tp")  // vLLM's short ones
      one.key = one.key == "tp"    ? "tensor_parallel_size"
                : one.key == "dcp" ? "decode_context_parallel_size"
                                   : "prefill_context_parallel_size";
    out.push_back(std::move(one));
  }
  return out;
}

class Words {
 public:
  Words(std::string_view text, std::vector<Word> all) : text_(text), all_(std::move(all)) {}

  Expected<std::vector<Sharding>> read() {
    if (const Word* degree = find("context_parallel_degree")) POSENC_CHECK(of_torchtitan(*degree));
    if (const Word* ranks = find("context_parallel_size")) POSENC_CHECK(of_size(*ranks));
    for (const std::string_view key :
         {"ulysses_sequence_parallel_size", "ulysses_parallel_size", "parallelism_config_sp_size",
          "sp_size", "ds_sequence_parallel_size"})
      if (const Word* ranks = find(key)) {
        const std::string_view engine = key.starts_with("ulysses") ? "verl" : "deepspeed";
        POSENC_CHECK(add({.exchange = Exchange::heads, .engine = std::string(engine)}, *ranks));
      }
    for (const std::string_view key : {"parallelism_config_cp_size", "cp_size"})
      if (const Word* ranks = find(key))
        POSENC_CHECK(add(detail::of_engine(key == "cp_size" ? "torch" : "accelerate"), *ranks));
    for (const std::string_view key : {"sequence_parallel_degree", "ring_attn_size"})
      if (const Word* ranks = find(key)) POSENC_CHECK(add(of_ring_functions(), *ranks));
    if (const Word* ranks = find("sequence_parallel_size")) POSENC_CHECK(of_sequences(*ranks));
    POSENC_CHECK(of_serving());
    return std::move(out_);
  }

 private:
  const Word* find(std::string_view key) const {
    const Word* last = nullptr;
    for (const Word& one : all_)
      if (one.key == key && !one.value.empty() && one.value != "null" && one.value != "None")
        last = &one;
    return last;
  }
  std::string_view value(std::string_view key) const {
    const Word* word = find(key);
    return word ? std::string_view(word->value) : std::string_view();
  }
  bool is_on(std::string_view key) const {
    const std::string_view said = value(key);
    return said == "true" || said == "True" || said == "1";
  }
  bool mentions(std::string_view word) const { return text_.contains(word); }

  static Expected<std::int64_t> number(const Word& word) {
    if (const auto value = posenc::detail::whole_number(word.value)) return *value;
    return fail(detail::where, word.key + " must be a number", word.value, "write it as 8");
  }

  // One rank shares nothing out. What was read stands beside it.
  Expected<void> add(Sharding sharding, const Word& ranks,
                     std::initializer_list<std::string_view> beside = {}) {
    POSENC_TRY(count, number(ranks));
    if (count == 1) return {};
    sharding.ranks = count;
    sharding.said = {ranks.key + " " + ranks.value};
    for (const std::string_view key : beside)
      if (const Word* word = find(key)) sharding.said.push_back(word->key + " " + word->value);
    POSENC_TRY(checked, detail::checked(std::move(sharding)));
    out_.push_back(std::move(checked));
    return {};
  }

  Expected<void> of_torchtitan(const Word& degree) {
    Sharding one = detail::of_engine("torch");
    const std::string_view balancer = value("context_parallel_load_balancer");
    const bool none = std::ranges::any_of(all_, [](const Word& word) {
      return word.key == "context_parallel_load_balancer" &&
             (word.value == "None" || word.value == "none" || word.value == "null");
    });
    if (none) one.order = Order::contiguous;
    if (balancer == "ptrr") one.order = Order::balanced, one.block = 0;
    if (value("context_parallel_rotate_method") == "alltoall" ||
        value("context_parallel_rotate_method") == "all-to-all")
      one.exchange = Exchange::ring;
    return add(std::move(one), degree,
               {"context_parallel_load_balancer", "context_parallel_rotate_method"});
  }

  // Megatron-LM and all that train by it; axolotl and NeMo-RL's DTensor have the same word.
  Expected<void> of_size(const Word& ranks) {
    if (find("ring_attn_func") || find("heads_k_stride") || find("base_model"))
      return add(of_ring_functions(), ranks, {"ring_attn_func"});
    if (mentions("dtensor_cfg") && !mentions("megatron_cfg"))
      return add(detail::of_engine("nemo-rl"), ranks);
    const bool gathers = is_on("allgather_cp");
    std::string_view engine = "megatron-core";
    if (gathers || find("rollout_batch_size") || mentions("slime")) engine = "slime";
    if (mentions("actor_rollout_ref") || mentions("verl")) engine = "verl";
    Sharding one = detail::of_engine("megatron-core");
    one.engine = engine;
    const std::string_view comm = value("cp_comm_type");
    if (comm == "a2a") {
      one.exchange = Exchange::heads;
    } else if (comm == "all_gather" || comm == "allgather") {
      one.exchange = Exchange::gather;
    } else if (comm == "a2a+p2p") {
      one.exchange = Exchange::ring_and_heads;
      // The first level of the hierarchy exchanges heads.
      const std::string_view sizes = value("hierarchical_context_parallel_sizes");
      const Word first{"hierarchical_context_parallel_sizes",
                       std::string(sizes.substr(0, sizes.find(' ')))};
      POSENC_TRY(heads, number(first));
      one.head_ranks = heads;
    }
    if (gathers) {
      one.exchange = Exchange::gather;
      one.order = Order::contiguous;
    }
    for (const std::string_view key : {"cp_partition_mode", "cp_layout", "attention_cp_layout"})
      if (value(key) == "contiguous")
        one.order = Order::contiguous;
      else if (value(key) == "zigzag" && !gathers)
        one.order = Order::zigzag;
    // Heads that are exchanged see the text in order, whatever the order before.
    return add(std::move(one), ranks,
               {"cp_comm_type", "hierarchical_context_parallel_sizes", "allgather_cp",
                "cp_partition_mode", "cp_layout", "attention_cp_layout"});
  }

  // ring-flash-attention's functions, by axolotl's names or its own.
  Sharding of_ring_functions() const {
    Sharding one = detail::of_engine("ring-flash-attention");
    one.order = Order::contiguous;
    const std::string_view function = value("ring_attn_func");
    if (function.contains("zigzag")) one.order = Order::zigzag;
    if (function.contains("stripe")) one.order = Order::round_robin;
    if (function.contains("llama3") || function.empty()) one.exchange = Exchange::gather;
    return one;
  }

  // 360-LLaMA-Factory names a mode; DeepSpeed and ms-swift exchange heads.
  Expected<void> of_sequences(const Word& ranks) {
    const std::string_view mode = value("sequence_parallel_mode");
    Sharding one{.exchange = Exchange::heads, .engine = "deepspeed"};
    if (mode.contains("zigzag")) {
      one = detail::of_engine("ring-flash-attention");
    } else if (mode == "usp") {
      one = {.order = Order::zigzag, .exchange = Exchange::ring_and_heads};
      if (const Word* heads = find("sequence_parallel_ulysses_degree")) {
        POSENC_TRY(count, number(*heads));
        one.head_ranks = count;
      }
    }
    return add(std::move(one), ranks, {"sequence_parallel_mode"});
  }

  // vLLM shares out the cache of decoding, and prefill; SGLang both, too.
  Expected<void> of_serving() {
    if (const Word* ranks = find("decode_context_parallel_size")) {
      Sharding one = detail::of_engine("vllm");
      for (const std::string_view key :
           {"dcp_kv_cache_interleave_size", "cp_kv_cache_interleave_size"})
        if (const Word* block = find(key)) {
          POSENC_TRY(tokens, number(*block));
          one.block = tokens;
        }
      POSENC_CHECK(add(std::move(one), *ranks,
                       {"cp_kv_cache_interleave_size", "dcp_kv_cache_interleave_size"}));
    }
    if (const Word* ranks = find("prefill_context_parallel_size"))
      POSENC_CHECK(
          add({.order = Order::zigzag, .exchange = Exchange::gather, .engine = "vllm"}, *ranks));
    if (const Word* ranks = find("dcp_size")) {
      Sharding one = detail::of_engine("vllm");
      one.engine = "sglang";
      POSENC_CHECK(add(std::move(one), *ranks));
    }
    if (const Word* ranks = find("attn_cp_size")) {
      Sharding one = detail::of_engine("sglang");
      for (const std::string_view key :
           {"prefill_cp_mode", "nsa_prefill_cp_mode", "dsa_prefill_cp_mode", "cp_strategy"})
        if (value(key) == "zigzag" || value(key) == "in-seq-split") one.order = Order::zigzag;
      POSENC_CHECK(
          add(std::move(one), *ranks,
              {"cp_strategy", "dsa_prefill_cp_mode", "nsa_prefill_cp_mode", "prefill_cp_mode"}));
    }
    return {};
  }

  std::string_view text_;
  std::vector<Word> all_;
  std::vector<Sharding> out_;
};

bool is_settings(std::string_view text) {
  return text.contains('\n') && !text.contains("\\\n") && !text.contains(" --");
}

}  // namespace

Expected<std::vector<Sharding>> shardings_of(std::string_view text) {
  constexpr std::size_t longest = std::size_t{1} << 20;
  if (text.size() > longest)
    return fail(detail::where, "settings must be at most 1 MiB",
                std::to_string(text.size()) + " bytes", "give what starts the job alone");
  std::vector<Word> words;
  const auto of_settings = [&] {
    const posenc::detail::Settings settings(text);
    for (const posenc::detail::Setting& one : settings.all())
      words.push_back({last_part(one.path), one.value});
  };
  if (is_settings(text)) {
    of_settings();
  } else {
    POSENC_TRY(of_shell, posenc::detail::shell_words(text));
    words = of_command(of_shell);
    // One line of YAML or JSON.
    if (words.empty()) of_settings();
  }
  return Words(text, std::move(words)).read();
}

Expected<Sharding> read_sharding(std::string_view text) {
  const bool one_word =
      text.find_first_of(" \t\n=") == text.npos || text.find(':') < text.find('=');
  if (one_word && text.find_first_of(" \t\n") == text.npos) return detail::read_words(text);
  POSENC_TRY(all, shardings_of(text));
  if (all.empty())
    return fail(detail::where, "a job's words must share a text out", text.substr(0, 60),
                "write zigzag:8, or give --context-parallel-size 8");
  return all.front();
}

}  // namespace posenc::layout
