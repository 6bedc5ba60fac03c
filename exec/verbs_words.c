/* Codes of libibverbs as words: what happened, and what to look at. */
#include "exec/verbs_device.h"

#include <errno.h>

/* Volume 1 of the InfiniBand Architecture Specification, 11.6.2, in this project's words: "local" is
 * this end, "remote" the peer. */
static const char *const status_words[] = {
    [IBV_WC_SUCCESS] = "done",
    [IBV_WC_LOC_LEN_ERR] = "a message is longer than this end can take",
    [IBV_WC_LOC_QP_OP_ERR] = "this end's card could not carry out the request (queue pair "
                             "inconsistent)",
    [IBV_WC_LOC_EEC_OP_ERR] =
        "this end's card could not carry out the request (end-to-end context)",
    [IBV_WC_LOC_PROT_ERR] = "the local memory of the request is not registered for it",
    [IBV_WC_WR_FLUSH_ERR] = "the queue pair was shut down with requests in flight",
    [IBV_WC_MW_BIND_ERR] = "a memory window could not be bound",
    [IBV_WC_BAD_RESP_ERR] = "the peer answered something unexpected",
    [IBV_WC_LOC_ACCESS_ERR] = "the peer wrote where this end's memory does not allow it",
    [IBV_WC_REM_INV_REQ_ERR] = "the peer's card refused the request as invalid (too long, or not "
                               "enabled there)",
    [IBV_WC_REM_ACCESS_ERR] =
        "the peer's memory is not registered for this write (wrong key, address "
        "or length)",
    [IBV_WC_REM_OP_ERR] = "the peer's card could not complete the request",
    [IBV_WC_RETRY_EXC_ERR] = "the peer does not answer (it died, its queue pair is gone, or the "
                             "network between is broken)",
    [IBV_WC_RNR_RETRY_EXC_ERR] = "the peer never had a receive posted",
    [IBV_WC_LOC_RDD_VIOL_ERR] = "reliable datagram domains do not match",
    [IBV_WC_REM_INV_RD_REQ_ERR] = "the peer refused a reliable datagram request",
    [IBV_WC_REM_ABORT_ERR] = "the peer aborted the request",
    [IBV_WC_INV_EECN_ERR] = "invalid end-to-end context number",
    [IBV_WC_INV_EEC_STATE_ERR] = "invalid end-to-end context state",
    [IBV_WC_FATAL_ERR] = "the card failed: look at the kernel's log (dmesg)",
    [IBV_WC_RESP_TIMEOUT_ERR] = "the peer's response took too long",
    [IBV_WC_GENERAL_ERR] = "the card reports an error without saying which",
    [IBV_WC_TM_ERR] = "tag matching failed",
    [IBV_WC_TM_RNDV_INCOMPLETE] = "a tagged rendezvous was left incomplete",
};

const char *
tt_verbs_status_words(int status)
{
    if (status < 0 || status >= (int)G_N_ELEMENTS(status_words) || !status_words[status])
        return "unknown completion status";
    return status_words[status];
}

static const struct {
    const char *words;
    gboolean harmless;
} event_words[] = {
    [IBV_EVENT_CQ_ERR] = { "the completion queue overflowed", FALSE },
    [IBV_EVENT_QP_FATAL] = { "the queue pair failed", FALSE },
    [IBV_EVENT_QP_REQ_ERR] = { "the peer sent a request that is invalid here", FALSE },
    [IBV_EVENT_QP_ACCESS_ERR] = { "the peer wrote where this end's memory does not allow it",
                                  FALSE },
    [IBV_EVENT_COMM_EST] = { "the peer's first packet came before the connection was complete",
                             TRUE },
    [IBV_EVENT_SQ_DRAINED] = { "the send queue is drained", TRUE },
    [IBV_EVENT_PATH_MIG] = { "the connection moved to its other path", TRUE },
    [IBV_EVENT_PATH_MIG_ERR] = { "the connection could not move to its other path", FALSE },
    [IBV_EVENT_DEVICE_FATAL] = { "the card failed: look at the kernel's log (dmesg)", FALSE },
    [IBV_EVENT_PORT_ACTIVE] = { "the port is up", TRUE },
    [IBV_EVENT_PORT_ERR] = { "the port went down", TRUE }, /* may come back before retries end */
    [IBV_EVENT_LID_CHANGE] = { "the port's LID changed", TRUE },
    [IBV_EVENT_PKEY_CHANGE] = { "the port's partition keys changed", TRUE },
    [IBV_EVENT_SM_CHANGE] = { "another subnet manager took over", TRUE },
    [IBV_EVENT_SRQ_ERR] = { "the shared receive queue failed", FALSE },
    [IBV_EVENT_SRQ_LIMIT_REACHED] = { "the shared receive queue runs low", TRUE },
    [IBV_EVENT_QP_LAST_WQE_REACHED] = { "the queue pair has used its last receive", TRUE },
    [IBV_EVENT_CLIENT_REREGISTER] = { "the subnet manager asks to subscribe again", TRUE },
    [IBV_EVENT_GID_CHANGE] = { "the port's addresses (GIDs) changed", TRUE },
    [IBV_EVENT_WQ_FATAL] = { "a work queue failed", FALSE },
};

const char *
tt_verbs_event_words(int event, gboolean *harmless)
{
    gboolean known =
        event >= 0 && event < (int)G_N_ELEMENTS(event_words) && event_words[event].words;

    if (harmless)
        *harmless = !known || event_words[event].harmless;
    return known ? event_words[event].words : "unknown event";
}

const char *
tt_verbs_errno_words(int code)
{
    switch (code) {
    case EINVAL: return "the card refuses these parameters";
    case ENOMEM: return "no room: of memory, or of what the card can hold";
    case ENOSPC: return "the card has no room for more";
    case EACCES:
    case EPERM: return "not permitted: read and write access to /dev/infiniband/uverbs* is needed";
    case ENODEV:
    case EIO: return "the card is gone or failed: look at the kernel's log (dmesg)";
    case ENOENT: return "/dev/infiniband/uverbs* is missing: load the module ib_uverbs";
    case ENOSYS:
    case EOPNOTSUPP: return "the card or its driver cannot do this";
    case EMFILE: return "too many open files (ulimit -n)";
    case ETIMEDOUT: return "no answer from the peer's address (is it reachable, is the GID right?)";
    case ENETUNREACH:
    case EHOSTUNREACH: return "no route to the peer's address (GID)";
    case ENOTCONN: return "the connection is broken";
    case EFAULT: return "the memory is not mapped";
    }
    return g_strerror(code);
}
