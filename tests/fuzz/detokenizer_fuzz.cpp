// SPDX-License-Identifier: Apache-2.0
// Ids to text: a stream gives whole characters only, and together what decoding all at once gives.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fuzz/fuzz_vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace brigade;
  if (size < 2) return 0;
  const auto tokenizer = fuzz::tokenizer_of(bytes[0]);
  const bool special = (bytes[1] & 1) != 0;
  std::vector<std::int32_t> ids;
  // Two bytes an id, a few of which are outside the vocabulary.
  for (std::size_t i = 2; i + 1 < size; i += 2)
    ids.push_back((bytes[i] | bytes[i + 1] << 8) % (tokenizer->vocab_size() + 4) - 2);
  model::StreamingDetokenizer stream(tokenizer, special);
  std::string text;
  for (const std::int32_t id : ids) {
    const std::string piece = stream.push(id);
    INVARIANT(model::is_valid_utf8(piece)) << "half a character";
    text += piece;
  }
  text += stream.finish();
  INVARIANT(text == tokenizer->decode(ids, special)) << "the stream is not the text";
  INVARIANT(stream.finish().empty()) << "something is still held";
  return 0;
}
