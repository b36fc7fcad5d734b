find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
brigade_library(tokenizer
  SOURCES bpe.cpp byte_bpe_tokenizer.cpp charsmap.cpp chat_template.cpp pre_tokenizer.cpp sentencepiece_tokenizer.cpp special_tokens.cpp
          spelling.cpp tokenizer.cpp tokenizer_gguf.cpp unigram_tokenizer.cpp utf8.cpp vocabulary.cpp vocabulary_tokenizer.cpp
          jinja/attributes.cpp jinja/brace_format.cpp jinja/evaluator.cpp jinja/evaluator_statements.cpp jinja/expression_parser.cpp jinja/expression_parser_postfix.cpp
          jinja/filters.cpp jinja/filters_layout.cpp jinja/filters_sequence.cpp jinja/format.cpp jinja/functions.cpp jinja/lexer.cpp
          jinja/methods.cpp jinja/methods_layout.cpp jinja/operators.cpp jinja/parser.cpp jinja/slice.cpp jinja/string_format.cpp jinja/string_literal.cpp
          jinja/strings.cpp jinja/tests.cpp jinja/text.cpp jinja/time_format.cpp jinja/value.cpp
  DEPS base gguf
  PRIVATE_DEPS PkgConfig::PCRE2)
