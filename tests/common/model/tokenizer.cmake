find_package(Boost 1.81 REQUIRED COMPONENTS json)
brigade_test(tokenizer_test
  SOURCES bpe_test.cpp chat_template_golden_test.cpp chat_template_test.cpp detokenizer_test.cpp
          pre_tokenizer_test.cpp sentencepiece_tokenizer_test.cpp special_tokens_test.cpp tokenizer_golden_test.cpp tokenizer_test.cpp unigram_tokenizer_test.cpp utf8_test.cpp
          jinja/text_test.cpp
  DEPS tokenizer test_models Boost::json)
