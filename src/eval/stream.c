#include "eval/stream.h"

#include <string.h>

#include "text/utf8.h"

void text_stream_free(TextStream *stream) {
    bytes_free(&stream->held);
}

/* Whether more bytes could make a character of these. Only the second byte has limits of its own,
 * and one of 80 and BF is within them whatever the first. */
static bool begins_character(const uint8_t *text, size_t size) {
    static const uint8_t fillers[] = {0x80, 0xBF};
    if (!size || size > 3) return false;
    for (size_t i = 0; i < 2; i++) {
        uint8_t whole[4];
        memset(whole, fillers[i], sizeof whole);
        memcpy(whole, text, size);
        if (utf8_character(whole, sizeof whole) > size) return true;
    }
    return false;
}

/* The length of the run at the start that could have begun a character, at least 1. */
static size_t broken_run(const uint8_t *text, size_t size) {
    size_t length = 1;
    while (length < size && begins_character(text, length + 1)) length++;
    return length;
}

/* Appends text[0 .. size) with what is not UTF-8 replaced. An unfinished character at the end is
 * left unless `last`; returns in *used how much was taken. */
static bool append_valid(Bytes *out, const uint8_t *text, size_t size, bool last, size_t *used,
                         Error *error) {
    size_t at = 0;
    for (;;) {
        size_t valid = utf8_valid_prefix(text + at, size - at);
        if (!bytes_append(out, text + at, valid, error)) return false;
        at += valid;
        if (at == size || (!last && begins_character(text + at, size - at))) break;
        if (!bytes_append(out, "\xEF\xBF\xBD", 3, error)) return false;
        at += broken_run(text + at, size - at);
    }
    *used = at;
    return true;
}

/* Whether a stop string ends at text + end; *start is where the longest such begins. */
static bool stop_ends_at(const TextStream *stream, size_t end, size_t *start) {
    size_t longest = 0;
    for (size_t i = 0; i < stream->stop_count; i++) {
        size_t length = strlen(stream->stops[i]);
        if (length > longest && length <= end &&
            !memcmp(stream->held.data + end - length, stream->stops[i], length))
            longest = length;
    }
    *start = end - longest;
    return longest > 0;
}

/* Whether the held text from `at` on is the beginning of a stop string. */
static bool begins_stop(const TextStream *stream, size_t at) {
    size_t size = stream->held.size - at;
    for (size_t i = 0; i < stream->stop_count; i++)
        if (size < strlen(stream->stops[i]) &&
            !memcmp(stream->held.data + at, stream->stops[i], size))
            return true;
    return false;
}

/* Shows held[0 .. size) as far as it is certain and drops what was shown. */
static bool show(TextStream *stream, size_t size, bool last, Bytes *out, Error *error) {
    size_t used;
    if (!size) return true;
    if (!append_valid(out, stream->held.data, size, last, &used, error)) return false;
    stream->held.size -= used;
    memmove(stream->held.data, stream->held.data + used, stream->held.size);
    return true;
}

bool text_stream_push(TextStream *stream, const uint8_t *bytes, size_t size, Bytes *out,
                      Error *error) {
    if (stream->stopped) return true;
    size_t searched = stream->held.size, at;
    if (!bytes_append(&stream->held, bytes, size, error)) return false;
    for (size_t end = searched + 1; end <= stream->held.size; end++)
        if (stop_ends_at(stream, end, &at)) {
            stream->stopped = true;
            if (!show(stream, at, true, out, error)) return false;
            stream->held.size = 0;
            return true;
        }
    for (at = 0; at < stream->held.size && !begins_stop(stream, at); at++) continue;
    return show(stream, at, false, out, error);
}

bool text_stream_finish(TextStream *stream, Bytes *out, Error *error) {
    return show(stream, stream->held.size, true, out, error);
}
