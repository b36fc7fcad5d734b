brigade_library(solo_collective SOURCES solo.cpp DEPS base)
