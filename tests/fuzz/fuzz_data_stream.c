/* Decompression and document splitting of a hostile file: the first byte picks text or JSON lines. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[] = "/dev/shm/hearth-fuzz-XXXXXX";
    static int descriptor = -1;
    if (descriptor < 0) descriptor = mkstemp(path);
    if (descriptor < 0) abort();
    if (size < 1) return 0;
    if (ftruncate(descriptor, 0) ||
        pwrite(descriptor, data + 1, size - 1, 0) != (ssize_t)(size - 1))
        abort();
    Error error;
    Piece piece;
    const char *input = path;
    ReaderSettings settings = {.field = data[0] & 1 ? "text" : NULL, .split_on = "\\n\\n"};
    Reader *reader = reader_open(&input, 1, &settings, &error);
    while (reader && reader_next(reader, &piece, &error) == READ_PIECE)
        if (piece.size < 1 || piece.size > READER_PIECE) abort();
    reader_free(reader);
    return 0;
}
