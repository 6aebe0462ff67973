// State files that llama.cpp wrote (tests/data/llama_cpp), cut short and made up.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "posenc/files.h"
#include "tests/paths.h"

namespace posenc {
namespace {

std::string state_file(std::string_view name) {
  const auto file = MappedFile::open(test::data_path("llama_cpp/" + std::string(name)));
  EXPECT_TRUE(file) << file.error().message();
  const auto bytes = file->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> state_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(LlamaState, HasTokensPositionsAndKeys) {
  const std::string text = state_file("smollm2.state");
  const auto state = parse_llama_state(state_bytes(text), "x");
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->tokens, std::vector<std::int64_t>(64, 260));
  ASSERT_EQ(state->caches.size(), 1U);
  const LlamaCache& cache = state->caches.front();
  EXPECT_EQ(cache.axes, 1);
  EXPECT_EQ(cache.position.back(), 63);
  ASSERT_EQ(cache.place.size(), 64U);
  EXPECT_EQ(text[cache.place.back()], 63);
  ASSERT_EQ(cache.keys.size(), 2U);
  EXPECT_EQ(cache.keys.front().type, "F16");
  EXPECT_EQ(cache.keys.front().shape, (std::vector<std::int64_t>{64, 192}));
  EXPECT_EQ(state->unread_bytes, 0U);
}

TEST(LlamaState, ASessionHasTheSameBehindTheModelsName) {
  const std::string text = state_file("smollm2.state");
  std::string session = text;
  const std::uint32_t head[] = {0x6767736e, 10};
  std::memcpy(session.data(), head, sizeof head);
  session.insert(12 + 4 * 64, std::string("\5\0\0\0llama", 9));
  const auto state = parse_llama_state(state_bytes(session), "x");
  ASSERT_TRUE(state) << state.error().message();
  const auto same = parse_llama_state(state_bytes(text), "x");
  EXPECT_EQ(state->caches.front().position, same->caches.front().position);
}

// Small ones, laid out as llama.cpp lays out what else there is.
LlamaState small_state(const std::string& name) {
  const auto file = MappedFile::open(test::data_path("../../tests/fuzz/seeds/llama_state/" + name));
  EXPECT_TRUE(file);
  const auto state = parse_llama_state(file->bytes(), name);
  EXPECT_TRUE(state) << name;
  EXPECT_EQ(state->unread_bytes, 0U) << name;
  return state.value_or(LlamaState{});
}

TEST(LlamaState, LayersWithAWindowHaveACacheOfTheirOwn) {
  const LlamaState state = small_state("windows");
  ASSERT_EQ(state.caches.size(), 2U);
  EXPECT_EQ(state.caches[0].keys.size(), 1U);
  EXPECT_EQ(state.caches[1].keys.size(), 2U);
}

TEST(LlamaState, CellsOfPicturesHaveThreePositions) {
  for (const char* name : {"pictures", "token_of_cell"}) {
    const LlamaState state = small_state(name);
    ASSERT_EQ(state.caches.size(), 1U) << name;
    EXPECT_EQ(state.caches[0].axes, 3) << name;
    EXPECT_EQ(state.caches[0].position.size(), 6U) << name;
  }
}

TEST(LlamaState, ValuesMayBeTransposedOrMissing) {
  EXPECT_EQ(small_state("transposed").caches[0].keys[0].shape, (std::vector<std::int64_t>{3, 8}));
  EXPECT_EQ(small_state("latent").caches[0].keys[0].shape, (std::vector<std::int64_t>{2, 4}));
}

TEST(LlamaState, WhatFollowsThatIsNoCacheIsCounted) {
  const std::string text = state_file("smollm2.state") + std::string(7, '\xff');
  const auto state = parse_llama_state(state_bytes(text), "x");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->unread_bytes, 7U);
}

TEST(LlamaState, AnyCutIsRefusedOrLeavesRestUnread) {
  const std::string text = state_file("smollm2.state");
  for (std::size_t length = 0; length < text.size(); length += 997) {
    const auto state = parse_llama_state(state_bytes(text.substr(0, length)), "x");
    EXPECT_TRUE(state ? state->unread_bytes > 0 : !state.error().rule.empty()) << length;
  }
  EXPECT_FALSE(parse_llama_state(state_bytes(text.substr(0, 1000)), "x"));
}

TEST(LlamaState, AnotherVersionIsNamed) {
  std::string text = state_file("smollm2.state");
  text[4] = 9;
  const auto state = parse_llama_state(state_bytes(text), "x");
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().got, "9");
}

}  // namespace
}  // namespace posenc
