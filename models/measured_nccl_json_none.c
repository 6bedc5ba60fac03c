/* Stand-in for measured_nccl_json.c where json-glib is missing: measured_json_none.c says so. */
#include "models/measured_private.h"
