/* measured_nccl_json.h - the -J files of nccl-tests. Private to the JSON readers. */
#pragma once
#include "models/measured_private.h"

typedef struct _JsonObject JsonObject; /* json-glib's own */

gboolean tt_measured_is_nccl_json(JsonObject *root);
GPtrArray *tt_measured_from_nccl_json(const char *origin, JsonObject *root, GError **error);
