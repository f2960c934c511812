/* A Parquet file from metadata to strings, through every column name of the seeds. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIECES = 1 << 16 }; /* a few bytes can stand for billions of values */

static void read_column(const char *path, const char *name) {
    Error error;
    Piece piece;
    void *file = format_parquet.open(path, &(ReaderSettings){.field = name}, &error);
    for (int i = 0; file && i < MOST_PIECES; i++) {
        if (format_parquet.next(file, &piece, &error) != READ_PIECE) break;
        if (piece.size > READER_PIECE) abort();
        for (size_t j = 0; j < piece.size; j += 64)
            (void)*(const volatile uint8_t *)(piece.text + j);
    }
    if (file) format_parquet.close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {
        "text",       "page.text",     "string",       "a",      "b",          "c1",
        "foo",        "name",          "FRUIT",        "String", "string_col", "binary_field",
        "flba_field", "c_customer_id", "c_first_name:"};
    static char path[] = "/dev/shm/hearth-fuzz-XXXXXX";
    static int descriptor = -1;
    if (descriptor < 0) descriptor = mkstemp(path);
    if (descriptor < 0) abort();
    if (ftruncate(descriptor, 0) || pwrite(descriptor, data, size, 0) != (ssize_t)size) abort();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) read_column(path, names[i]);
    return 0;
}
