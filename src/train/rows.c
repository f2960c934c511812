#include "train/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "train/run.h"

Rows rows_of_architecture(const ModelConfig *config) {
    return model_is_nanochat(config) ? (Rows){PACKING_BESTFIT, .document_mask = false}
                                     : (Rows){PACKING_STREAM, .document_mask = true};
}

const char *attention_name(bool document_mask) {
    return document_mask ? "inside documents" : "across documents";
}

static bool read_packing(const json_t *state, Packing *packing, Error *error) {
    const char *name = json_get_string(state, "packing", error);
    return name && (packing_find(name, packing) || fail(error, "no packing is named '%s'", name));
}

static bool read_attention(const json_t *state, bool *document_mask, Error *error) {
    const char *name = json_get_string(state, "attention", error);
    if (!name) return false;
    *document_mask = !strcmp(name, attention_name(true));
    return *document_mask || !strcmp(name, attention_name(false)) ||
           fail(error, "\"attention\" is '%s'; it must be '%s' or '%s'", name, attention_name(true),
                attention_name(false));
}

static bool read_rows(const char *path, Rows *rows, Error *error) {
    json_t *state = json_read_file(path, STATE_BYTES_MAX, error);
    if (!state) return false;
    int64_t version;
    bool done = json_get_integer(state, "version", 1, STATE_VERSION, &version, error) &&
                read_packing(state, &rows->packing, error) &&
                (version == 1 || read_attention(state, &rows->document_mask, error));
    json_decref(state);
    return done || fail_within(error, "%s", path);
}

bool rows_of_checkpoint(const char *checkpoint, const ModelConfig *config, Rows *rows,
                        Error *error) {
    *rows = rows_of_architecture(config);
    char *path = path_join(checkpoint, "train_state.json", error);
    bool done = path && (!path_exists(path) || read_rows(path, rows, error));
    free(path);
    return done;
}
