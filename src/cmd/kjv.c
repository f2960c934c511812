#include "cmd/kjv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { VERSES = 31102 };

/* One verse to a line, after its place: "1Sa3:4 That the LORD called Samuel: ..." */
static const char command[] = "bible -f gen1:1-rev22:21 </dev/null 2>/dev/null";

/* Appends a verse; `chapter` holds the place of the one before, up to its colon. */
static bool append_verse(Bytes *text, const char *line, char chapter[16], Error *error) {
    const char *colon = strchr(line, ':'), *space = strchr(line, ' ');
    if (!colon || !space || colon > space || colon - line > 15)
        return fail(error, "'bible' printed what is not a verse: %.40s", line);
    size_t length = (size_t)(colon - line);
    bool new_chapter = strlen(chapter) != length || memcmp(chapter, line, length) != 0;
    if (new_chapter && text->size && !bytes_append(text, "\n", 1, error)) return false;
    memcpy(chapter, line, length);
    chapter[length] = '\0';
    return bytes_append(text, space + 1, strlen(space + 1), error);
}

static bool read_verses(FILE *pipe, Bytes *text, int *verses, Error *error) {
    char *line = NULL, chapter[16] = "";
    size_t capacity = 0;
    bool good = true;
    for (*verses = 0; good && getline(&line, &capacity, pipe) > 0; (*verses)++)
        good = append_verse(text, line, chapter, error);
    free(line);
    return good;
}

bool kjv_write(const char *path, Error *error) {
    FILE *pipe = popen(command, "r");
    if (!pipe) return fail_errno(error, "cannot run 'bible'");
    Bytes text = {0};
    int verses;
    bool good = read_verses(pipe, &text, &verses, error);
    pclose(pipe);
    if (good && verses == 0)
        good = fail(error,
                    "the demo's text is not installed: apt-get install bible-kjv, or give a text "
                    "of your own with --text FILE");
    else if (good && verses != VERSES)
        good = fail(error, "'bible' printed %d verses of %d; reinstall bible-kjv", verses, VERSES);
    good = good && file_write(path, text.data, text.size, error);
    bytes_free(&text);
    return good;
}
