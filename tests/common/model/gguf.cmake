# Small files and models that tests write themselves.
add_library(test_models STATIC ${PROJECT_SOURCE_DIR}/tests/support/gguf_builder.cpp
                               ${PROJECT_SOURCE_DIR}/tests/support/tiny_model.cpp)
target_link_libraries(test_models PUBLIC brigade_options gguf)

brigade_test(gguf_test SOURCES gguf_test.cpp spec_test.cpp split_test.cpp DEPS gguf test_models)
