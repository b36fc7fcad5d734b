# Model files, their description, and how they are cut over ranks.
find_library(SODIUM_LIBRARY sodium REQUIRED)
brigade_library(gguf
  SOURCES gguf.cpp mapped_file.cpp sha256.cpp spec.cpp split.cpp tensor_type.cpp
  DEPS base
  PRIVATE_DEPS ${SODIUM_LIBRARY})
