// A way of sharing a text out, by the words of `--cp`.
#pragma once

#include <string_view>

#include "posenc/context_parallel.h"

namespace posenc::layout::detail {

constexpr std::string_view where = "cp";

// "zigzag:8:by=ring". Errors: as of read_sharding().
Expected<Sharding> read_words(std::string_view text);
Expected<Sharding> checked(Sharding sharding);

// An engine by a name that people use: "megatron" is "megatron-core". "" if it is none.
std::string_view engine_named(std::string_view word);
// Its own layout, where nothing else is said.
Sharding of_engine(std::string_view engine);

// Which tokens each rank of the ring holds (head_ranks of a rank's neighbours hold it together).
Expected<Layout> layout_of(const Sharding& sharding, std::int64_t length, const Mask& mask);

}  // namespace posenc::layout::detail
