/* Text as it is generated: tokens are runs of bytes that may end inside a character or inside a
 * stop string; what comes out is valid UTF-8, as early as that is certain. */
#ifndef HEARTH_EVAL_STREAM_H
#define HEARTH_EVAL_STREAM_H

#include "base/memory.h"

/* Zero-initialise, then set the stop strings (none of them empty; they must outlive the stream).
 * Release with text_stream_free(). */
typedef struct TextStream {
    const char *const *stops;
    size_t stop_count;
    bool stopped; /* a stop string was seen: it and all after it are left out */
    Bytes held;   /* bytes that may yet become part of a character or a stop string */
} TextStream;

void text_stream_free(TextStream *stream);

/* Takes the bytes of a token and appends to `out` what can be shown by now. The text that comes out
 * in all does not depend on how the bytes are cut into tokens. When several stop strings match, the
 * one that is complete first counts. Bytes that are not UTF-8 become U+FFFD, one for each run that
 * could have begun a character (Unicode 15, table 3-8). */
bool text_stream_push(TextStream *stream, const uint8_t *bytes, size_t size, Bytes *out,
                      Error *error);

/* Shows what was held back: no more tokens will come. */
bool text_stream_finish(TextStream *stream, Bytes *out, Error *error);

#endif
