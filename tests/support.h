/* What tests share: cmocka, temporary folders, the shared data. */
#ifndef HEARTH_TESTS_SUPPORT_H
#define HEARTH_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#undef fail /* base/error.h has a function of that name; tests use fail_msg() */
#undef fail_msg
#define fail_msg(...) (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

#include "base/error.h"

/* A fresh directory under TMPDIR, removed at exit. */
const char *test_directory(void);

/* "DIRECTORY/name" inside test_directory(); lives until exit. */
const char *test_path(const char *name);

/* The path of a file of ../shared/data, or NULL when it is not there: then skip(). */
const char *shared_data(const char *name);

/* Fails the test with the message when `done` is false. */
#define assert_done(done, error) \
    do { \
        if (!(done)) { \
            fail_msg("%s", (error).message); \
            abort(); /* is not reached, which the compiler does not know */ \
        } \
    } while (0)

/* The call must fail and its message must contain `text`. */
#define assert_fails_with(call, error, text) \
    do { \
        assert_false(call); \
        if (!strstr((error).message, text)) \
            fail_msg("message lacks '%s': %s", text, (error).message); \
    } while (0)

#endif
