// Which sanitizer the tests are built with; GCC and clang say so in different ways.
#pragma once

#ifdef __has_feature
#define REPRISE_HAS_SANITIZER(name) __has_feature(name)
#else
#define REPRISE_HAS_SANITIZER(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || REPRISE_HAS_SANITIZER(address_sanitizer)
#define REPRISE_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__) || REPRISE_HAS_SANITIZER(thread_sanitizer)
#define REPRISE_THREAD_SANITIZER 1
#endif
