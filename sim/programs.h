/* programs.h - what each program of a plan does, apart from which chunks: read once for all lanes that run
 * it. Private to sim/. */
#pragma once
#include "sim/engine.h"

/* A connection a program uses. */
typedef struct {
    guint32 role;
    gboolean receiving;
} TtUse;

typedef struct {
    guint32 program, sub_lane;
    guint32 first_use, n_uses; /* into uses */
    guint64 look; /* a hash of its steps: equal for programs that differ in chunks only */
} TtProgram;

typedef struct {
    TtProgram *programs;
    guint32 n_programs, programs_room;
    TtUse *uses;
    guint32 n_uses, uses_room;
    guint32 *program_of; /* [lane] */
} TtPrograms;

/* FALSE if reading the steps of all programs is no small part of running them. */
gboolean tt_programs_read(TtPrograms *self, const TtEngine *engine);
void tt_programs_clear(TtPrograms *self);
