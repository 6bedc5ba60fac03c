/* measured_values.h - reading members of a JSON object that may hold anything. Private to the readers. */
#pragma once
#include <glib.h>

typedef struct _JsonObject JsonObject; /* json-glib's own */
typedef struct _JsonArray JsonArray;

/* NULL if missing or not text. Borrowed. */
const char *tt_json_text(JsonObject *object, const char *name);

/* NAN if missing, null or not a number; numbers written as text count. */
double tt_json_number(JsonObject *object, const char *name);

/* 0 if missing, negative, fractional, above @most or no number. */
guint64 tt_json_count(JsonObject *object, const char *name, guint64 most);

gboolean tt_json_true(JsonObject *object, const char *name);
JsonObject *tt_json_object(JsonObject *object, const char *name); /* NULL */
JsonArray *tt_json_array(JsonObject *object, const char *name);   /* NULL */

/* Element @i if it is an object, else NULL. */
JsonObject *tt_json_element(JsonArray *array, guint i);
