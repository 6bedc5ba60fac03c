/* profile.h - how a library behaves on a machine: what its steps cost beside the wires.
 *
 * "ideal" costs nothing but the wires: the textbook's alpha-beta machine. "tutti" is our own executor
 * with constants of a usual server, or, once `tutti calibrate` has run, measured on this machine.
 *
 * A step keeps its lane busy for
 *
 *     fixed[op] + bytes * per_byte[op](footprint)      + switch_s if the core last ran another rank
 *
 * where footprint is what the rank touches during the collective (its buffers), since that decides
 * which cache or memory the bytes come from. per_byte is a curve through measured points, linear in
 * log(footprint), flat outside. A message that is not cut into rounds and is no longer than uncut_bytes was
 * measured at a footprint of twice its length, and is looked up there: how many slots it cycles
 * through decides then, not the buffers (see tt_profile_footprint()).
 */
#pragma once
#include "models/units.h"

#define TT_PROFILE_ERROR (tt_profile_error_quark())
GQuark tt_profile_error_quark(void);
typedef enum { TT_PROFILE_ERROR_USAGE, TT_PROFILE_ERROR_FILE } TtProfileError;

#define TT_PROFILE_OPS        10 /* as many as TtOp has values; checked where both are known */
#define TT_PROFILE_MAX_POINTS 64

typedef struct {
    guint n;                                       /* points, 0: free */
    double footprint_bytes[TT_PROFILE_MAX_POINTS]; /* ascending */
    double fixed_s[TT_PROFILE_MAX_POINTS];
    double per_byte_s[TT_PROFILE_MAX_POINTS];
} TtOpCost;

/* What a connection crosses, the slowest of it: decides what a message costs beside the links. */
typedef enum {
    TT_HOP_LOCAL,  /* to or from a switch that reduces inside a node; a rank and itself */
    TT_HOP_NVLINK, /* peer access over NVLink only */
    TT_HOP_PCIE,   /* peer access over PCIe */
    TT_HOP_HOST,   /* through a CPU: its memory, or the link between sockets */
    TT_HOP_NET,    /* leaves the node */
    TT_N_HOPS
} TtHop;

typedef struct TtProfile TtProfile;
struct TtProfile {
    char *name;        /* "ideal", "tutti", or the path it was read from */
    char *machine;     /* what it was measured on, NULL for built-in ones */
    char *measured_at; /* ISO date, NULL */
    char *
        conditions; /* what was chosen when it was measured and should be so again, in words; NULL: nothing */

    gboolean covers_memory; /* per_byte and latency hold what crossing shared memory costs: links of
                                 kind "memory" are then free, so nothing is counted twice */
    gboolean lane_pushes; /* a lane is busy until its message is injected; else it only posts it */
    guint workers_per_rank; /* lanes of a rank that can work at once; 0: all */
    guint cores;            /* cores the ranks of a node share; 0: one for every worker */
    double uncut_bytes;     /* 0: footprints as they are */
    double
        direct_bytes; /* messages inside a node that are at least so long are lent or placed where
                                 they can be (algos/passing.h), and a step costs the bytes of what is
                                 left to do; 0: all pass through slots */
    double direct_crowded_bytes; /* the same for more ranks on a node than cores */
    double latency_s;            /* added to every message: flag seen by the other side */
    double credit_s;             /* a freed slot is seen by the sender this much later */
    double start_s;              /* once per collective and rank */
    double switch_s;             /* a core turns to another rank */
    TtOpCost op[TT_PROFILE_OPS];

    /* Per kind of connection; 0: nothing, no limit. A profile made in code sets them; they have no
     * place in a file. */
    double hop_latency_s[TT_N_HOPS]; /* added to every message's arrival, beside latency_s */
    double hop_bytes_per_s
        [TT_N_HOPS]; /* the most data one connection carries (one channel of a GPU) */
    double
        hop_gap_s[TT_N_HOPS]; /* between the starts of two messages of one connection, at least */
    double wire_factor;       /* bytes on the wire per byte of data, flags included; 0: 1 */
    double hop_wire_factor[TT_N_HOPS]; /* the same for one kind of connection; 0: wire_factor */

    TtProfile
        *next; /* the same machine in another state: other latency_s, credit_s and op; NULL: none.
                        The cores of a virtual machine move closer together and farther apart. Owned. */
};

#define TT_PROFILE_MAX_STATES 4

TtProfile *tt_profile_ideal(void);

/* A copy of @profile's scalars, with no costs, no names and no next: another state of its machine. */
TtProfile *tt_profile_new_state(const TtProfile *profile);

/* The state whose latency is within a factor 1.5 of @flag_s, the closest such; NULL if there is none. */
const TtProfile *tt_profile_state(const TtProfile *profile, double flag_s);
#define TT_PROFILE_STATE_FACTOR 1.5

/* A profile by name ("ideal", "tutti") or from a file `tutti calibrate` wrote. */
TtProfile *tt_profile_open(const char *name_or_path, GError **error);
void tt_profile_free(TtProfile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtProfile, tt_profile_free)

/* .ini with units on every quantity, source and kind on every group. Caller frees. */
char *tt_profile_to_text(const TtProfile *profile);

/* Where to look up a plan whose rank touches @footprint_bytes, in @n_rounds rounds of messages of at most
 * @message_bytes. */
double tt_profile_footprint(const TtProfile *profile, double footprint_bytes, guint64 n_rounds,
                            double message_bytes);

/* Seconds a lane works on one step. O(log points). */
double tt_profile_op_s(const TtProfile *profile, guint op, guint64 bytes, double footprint_bytes);
