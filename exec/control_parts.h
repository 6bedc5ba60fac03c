/* control_parts.h - the inside of TtControl, for control.c and control_gather.c. */
#pragma once
#include "exec/control.h"
#include "exec/control_meet.h"
#include "exec/control_wire.h"

enum { /* kinds of our own */
       GATHER_MINE = TT_CONTROL_RESERVED,
       GATHER_ALL,
       GATHER_FAILED
};

typedef struct {
    guint process;
    TtWireFrame frame;
} TtKept;

struct TtControl {
    TtMeeting meeting;
    TtWire *wires; /* [n_processes]; the root's to all, others' to the root */
    gboolean *polls_output;
    GQueue messages;        /* of TtKept, received and not asked for */
    TtKept *given;          /* what the caller has */
    TtKept **gathered;      /* [n_processes] */
    int epoll_fd, ready_fd; /* ready_fd is readable while there are messages */
    gboolean ready;
};

void tt_control_pump(TtControl *self,
                     int timeout_ms); /* waits for the sockets, does all they have to do */
void tt_control_set_ready(TtControl *self, gboolean ready);
gboolean tt_control_send_frame(TtControl *self, guint process, guint32 kind, gconstpointer data,
                               gsize bytes);
int tt_control_left_ms(gint64 deadline_us);
void tt_kept_free(gpointer data);
