/* Which of the four modes this is compiled for: TEST_ASAN, TEST_MSAN, TEST_RACE (set by the build) or none. */
#ifndef TEST_CUDA_HOST_SANITIZERS_H
#define TEST_CUDA_HOST_SANITIZERS_H

#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#elif __has_feature(memory_sanitizer)
#define TEST_MSAN 1
#endif
#endif

#ifndef TEST_ASAN
#define TEST_ASAN 0
#endif
#ifndef TEST_MSAN
#define TEST_MSAN 0
#endif
#ifndef TEST_RACE
#define TEST_RACE 0
#endif

#endif
