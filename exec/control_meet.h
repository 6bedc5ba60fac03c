/* control_meet.h - the meeting: strangers at a port become numbered processes.
 *
 *     peer                                root
 *     hello (nonce, ranks) ------------->          magic, byte order, protocol and version first
 *          <------------- hello (nonce)
 *     proof HMAC(secret, both hellos) -->          only now does anything of the peer's cost memory
 *          <------------- verdict, HMAC(secret, both hellos, other label), or why not
 *          <------------- the table of all, once all are here; or why not
 */
#pragma once
#include "exec/control.h"

typedef struct {
    guint first_rank, n_local;
    int fd;     /* -1: none; a peer has one to the root only */
    char *name; /* "rank 3 at 10.0.0.2" */
} TtMember;

typedef struct {
    GArray *members; /* of TtMember, by first_rank */
    guint own;
    guint n_strangers;
} TtMeeting;

gboolean tt_meet_as_root(const TtLaunch *launch, const TtControlOptions *options,
                         TtMeeting *meeting, GError **error);
gboolean tt_meet_as_peer(const TtLaunch *launch, const TtControlOptions *options,
                         TtMeeting *meeting, GError **error);

/* ---- what both sides share: control_hello.c ---- */

#define TT_HELLO_MAGIC      "TuttiCtl"
#define TT_HELLO_PROTOCOL   2
#define TT_HELLO_BYTE_ORDER 0x01020304u
#define TT_HELLO_TEXT       200 /* of a verdict */

typedef struct { /* up to version, the same for ever: others must be able to say how they differ */
    char magic[8];
    guint32 byte_order, protocol;
    char version[16];
    guint32 first_rank, n_local, n_ranks, has_secret;
    guint8 nonce[32];
} TtHello;

typedef struct {
    guint8 hmac[32];
} TtProof;

typedef enum { TT_VERDICT_WELCOME = 1, TT_VERDICT_REFUSED = 2 } TtVerdictCode;

typedef struct {
    guint32 code, reserved;
    TtProof proof;
    char text[TT_HELLO_TEXT]; /* why not */
} TtVerdict;

/* Frames after the verdict: the table; or why not: a TtExecError as guint32, and a text. */
enum { TT_MEET_TABLE = 1, TT_MEET_REFUSED };

typedef struct {
    guint32 n_members, own;
    struct {
        guint32 first_rank, n_local;
        char name[64];
    } rows[];
} TtMeetTable;

void tt_hello_make(TtHello *hello, const TtLaunch *launch, const TtControlOptions *options);
void tt_proof_make(TtProof *proof, const char *secret, const char *label, const TtHello *peer,
                   const TtHello *root);
gboolean tt_proof_equal(const TtProof *a, const TtProof *b); /* in constant time */

/* NULL if we understand each other; else how we do not: "runs Tutti 0.2.0, this is 0.1.0". */
char *tt_hello_differs(const TtHello *theirs, const TtHello *ours);

/* Where to listen or connect; and says whether a secret is needed. GArray of TtNetAddress. */
GArray *tt_meet_addresses(const TtLaunch *launch, const TtControlOptions *options, GError **error);
gboolean tt_meet_has_secret(const TtLaunch *launch, const TtControlOptions *options,
                            GError **error); /* for others than loopback */
char *tt_meet_where(const TtLaunch *launch); /* for messages */
#define TT_SECRET_HINT "TUTTI_SECRET or --secret-file must be the same everywhere"
