/* What nanochat's recipe makes of a model, as `hearth plan` shows it. */
#ifndef HEARTH_CMD_RECIPE_REPORT_H
#define HEARTH_CMD_RECIPE_REPORT_H

#include "base/json.h"
#include "train/settings.h"

/* Both only where settings_have_recipe(). */
void recipe_print(const TrainSettings *settings);
void recipe_add_json(const TrainSettings *settings, json_t *json);

#endif
