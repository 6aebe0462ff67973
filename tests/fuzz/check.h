// What must hold for every input, whatever it is. A target takes any bytes; must() ends the process
// where a rule is broken, and the fuzzer keeps the bytes as a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "posenc/error.h"
#include "posenc/files.h"
#include "posenc/model.h"

// One target a file: tests/fuzz/NAME.cc defines it. libFuzzer calls it, and so does
// tests/fuzz/replay.cc.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace posenc::fuzz {

inline std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void must(bool holds, std::string_view rule, std::string_view seen = {});

// Fit for a terminal and a log: no control characters, whole UTF-8, not endless.
void check_text(std::string_view text, std::size_t longest = 2000);

// Names where and which rule, in a message fit for a terminal.
void check_error(const Error& error);

// posenc's own JSON: it parses, and fast enough to be asked of every input.
void check_json(std::string_view text);

// A model that was read compiles, explains and prints; at other lengths it may also say why not.
void check_model(const Model& model);

// The bytes lie inside the file's, and the view (where there is one) inside them.
void check_tensor(const StoredTensor& tensor, std::span<const std::byte> file);

// The same of all tensors of a file; each is found by its name, and no byte belongs to two.
void check_tensors(std::span<const StoredTensor> tensors, std::span<const std::byte> file);

// Its numbers copied out are those that the view has.
void check_doubles(const StoredTensor& tensor);

}  // namespace posenc::fuzz
