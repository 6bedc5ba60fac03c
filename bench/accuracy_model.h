/* accuracy_model.h - what can be put to the test by bench/accuracy.
 */
#pragma once
#include "models/replay.h"

typedef struct {
    const char *name, *summary;

    /* Fits constants on @training (const TtReplay *, their rows within); NULL: nothing is fitted. What it
     * returns goes to time_us as data, then to release (may be NULL). */
    gpointer (*fit)(const GPtrArray *training);
    TtTimeModel time_us;
    void (*release)(gpointer constants);
} TtAccuracyModel;

/* The first is the default; ends with name NULL. A new model is a new row. */
static const TtAccuracyModel tt_accuracy_models[] = {
    { "nccl", "what NCCL's own table believes, made to choose by", NULL, tt_time_by_nccl, NULL },
    { NULL },
};
