/* Any bytes as a config.json: refused, or accepted with sizes whose parameter count is positive and
 * that survive being written and read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Error error;
    ModelConfig config, back;
    json_t *json = json_read_bytes("input", data, size, &error);
    bool accepted = json && model_config_from_json(&config, json, &error);
    json_decref(json);
    if (!accepted) return 0;
    if (model_parameters(&config) <= 0 || model_layer_window(&config, config.layers - 1) <= 0)
        abort();
    json = model_config_to_json(&config, "float32", &error);
    if (!json || !model_config_from_json(&back, json, &error)) abort();
    if (model_parameters(&back) != model_parameters(&config)) abort();
    json_decref(json);
    return 0;
}
