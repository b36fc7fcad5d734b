brigade_test(solo_collective_test SOURCES solo_test.cpp DEPS solo_collective)
