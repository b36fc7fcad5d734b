# Model files, their description, and how they are cut over ranks.
find_library(SODIUM_LIBRARY sodium REQUIRED)
brigade_library(gguf
  SOURCES byte_source.cpp foreign_file.cpp gguf.cpp gguf_header.cpp gguf_parts.cpp gguf_value.cpp sha256.cpp spec.cpp
    spec_keys.cpp spec_layers.cpp spec_rope.cpp spec_tensors.cpp split.cpp tensor_data.cpp tensor_type.cpp
  DEPS base
  PRIVATE_DEPS ${SODIUM_LIBRARY})
