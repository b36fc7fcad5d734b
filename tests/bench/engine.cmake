brigade_binary(engine_bench SOURCES engine_bench.cpp DEPS decoder solo_collective)
