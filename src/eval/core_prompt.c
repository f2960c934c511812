#include "eval/core_prompt.h"

#include <string.h>

typedef struct Text {
    const uint8_t *data;
    size_t size;
} Text;

/* The length of the white space, as Python's str.isspace() has it, that valid UTF-8 begins with; 0: none. */
static size_t space_length(const uint8_t *text, size_t size) {
    if (size && text[0] < 0x80)
        return (text[0] >= 0x09 && text[0] <= 0x0D) || (text[0] >= 0x1C && text[0] <= 0x20);
    if (size >= 2 && text[0] == 0xC2) return text[1] == 0x85 || text[1] == 0xA0 ? 2 : 0;
    if (size < 3) return 0;
    uint32_t code = (text[0] & 15u) << 12 | (text[1] & 63u) << 6 | (text[2] & 63u);
    bool space = text[0] >> 4 == 0xE &&
                 (code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
                  code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000);
    return space ? 3 : 0;
}

/* The length of the white space that it ends with. */
static size_t last_space_length(Text text) {
    for (size_t length = 1; length <= 3 && length <= text.size; length++)
        if (space_length(text.data + text.size - length, length) == length) return length;
    return 0;
}

static Text strip(Text text) {
    size_t length;
    while ((length = space_length(text.data, text.size))) text.data += length, text.size -= length;
    while ((length = last_space_length(text))) text.size -= length;
    return text;
}

static Text text_of(const json_t *texts, size_t choice) {
    const json_t *text = core_text(texts, choice);
    return (Text){(const uint8_t *)json_string_value(text), json_string_length(text)};
}

static bool append(Bytes *out, Text text, Error *error) {
    return bytes_append(out, text.data, text.size, error);
}

/* Context and delimiter of a choice, and its answer if wanted. */
static bool append_item(const CoreTask *task, const CoreItem *item, size_t choice, bool answered,
                        Bytes *out, Error *error) {
    Text context = text_of(item->contexts, choice);
    if (task->type == CORE_LANGUAGE_MODELING) context = strip(context);
    return append(out, context, error) &&
           bytes_append(out, task->delimiter, strlen(task->delimiter), error) &&
           (!answered || append(out, text_of(item->answers, choice), error));
}

static bool render(const CoreQuestion *question, size_t choice, bool answered, Bytes *out,
                   Error *error) {
    const CoreTask *task = question->task;
    out->size = 0;
    for (int i = 0; i < task->shots; i++) {
        const CoreItem *shot = &question->items[question->shots[i]];
        if (!append_item(task, shot, shot->gold, true, out, error) ||
            !bytes_append(out, "\n\n", 2, error))
            return false;
    }
    return append_item(task, &question->items[question->index], choice, answered, out, error);
}

bool core_prompt(const CoreQuestion *question, size_t choice, Bytes *out, Error *error) {
    return render(question, choice, true, out, error);
}

bool core_prompt_unanswered(const CoreQuestion *question, Bytes *out, Error *error) {
    if (!render(question, 0, false, out, error)) return false;
    Text text = strip((Text){out->data, out->size});
    if (text.size) memmove(out->data, text.data, text.size);
    out->size = text.size;
    return true;
}
