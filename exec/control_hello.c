#include "exec/control_meet.h"
#include "exec/net.h"
#include <string.h>
#include <sys/random.h>

void
tt_hello_make(TtHello *hello, const TtLaunch *launch, const TtControlOptions *options)
{
    memset(hello, 0, sizeof *hello);
    memcpy(hello->magic, TT_HELLO_MAGIC, sizeof hello->magic);
    hello->byte_order = TT_HELLO_BYTE_ORDER;
    hello->protocol = TT_HELLO_PROTOCOL;
    g_strlcpy(hello->version, TT_VERSION, sizeof hello->version);
    hello->first_rank = launch->first_rank;
    hello->n_local = launch->n_local;
    hello->n_ranks = launch->n_ranks;
    hello->has_secret = options->secret && *options->secret;
    if (getrandom(hello->nonce, sizeof hello->nonce, 0) != sizeof hello->nonce)
        g_error("the kernel gives no random bytes"); /* cannot happen for so few */
}

void
tt_proof_make(TtProof *proof, const char *secret, const char *label, const TtHello *peer,
              const TtHello *root)
{
    gsize bytes = sizeof proof->hmac;
    GHmac *hmac;

    memset(proof, 0, sizeof *proof);
    if (!secret || !*secret)
        return;
    hmac = g_hmac_new(G_CHECKSUM_SHA256, (const guchar *)secret, strlen(secret));
    g_hmac_update(hmac, (const guchar *)label, (gssize)strlen(label) + 1);
    g_hmac_update(hmac, (const guchar *)peer, sizeof *peer);
    g_hmac_update(hmac, (const guchar *)root, sizeof *root);
    g_hmac_get_digest(hmac, proof->hmac, &bytes);
    g_hmac_unref(hmac);
}

gboolean
tt_proof_equal(const TtProof *a, const TtProof *b)
{
    guint8 difference = 0;

    for (guint i = 0; i < sizeof a->hmac; i++)
        difference |= a->hmac[i] ^ b->hmac[i];
    return difference == 0;
}

char *
tt_hello_differs(const TtHello *theirs, const TtHello *ours)
{
    char version[sizeof theirs->version + 1] = { 0 };

    if (theirs->byte_order != ours->byte_order)
        return g_strdup_printf(
            "has the %s byte order, this machine the other: they cannot share vectors",
            GUINT32_SWAP_LE_BE(theirs->byte_order) == ours->byte_order
                ? (G_BYTE_ORDER == G_LITTLE_ENDIAN ? "big-endian" : "little-endian")
                : "an unknown");
    memcpy(version, theirs->version, sizeof theirs->version);
    for (char *c = version; *c; c++) /* it is about to be printed */
        *c = g_ascii_isgraph(*c) ? *c : '?';
    if (theirs->protocol != ours->protocol || strcmp(version, ours->version))
        return g_strdup_printf("runs Tutti %s (protocol %u), this is Tutti %s (protocol %u)",
                               version, theirs->protocol, ours->version, ours->protocol);
    return NULL;
}

char *
tt_meet_where(const TtLaunch *launch)
{
    if (!launch->root_host)
        return g_strdup("this machine");
    return g_strdup_printf(strchr(launch->root_host, ':') ? "[%s]:%u" : "%s:%u", launch->root_host,
                           launch->root_port);
}

gboolean
tt_meet_has_secret(const TtLaunch *launch, const TtControlOptions *options, GError **error)
{
    g_autofree char *where = tt_meet_where(launch);

    if (options->secret && *options->secret)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "processes on several machines, which meet %s%s, need a secret (" TT_SECRET_HINT
                ")",
                launch->root_host ? "at " : "over", launch->root_host ? where : " the network");
    return FALSE;
}

/* Names that mean this machine, whatever a file of hosts says. */
static gboolean
says_loopback(const char *host)
{
    return g_str_equal(host, "localhost") || g_str_has_prefix(host, "127.") ||
           g_str_equal(host, "::1");
}

GArray *
tt_meet_addresses(const TtLaunch *launch, const TtControlOptions *options, GError **error)
{
    gboolean root = launch->first_rank == 0, secret = options->secret && *options->secret;
    gboolean loopback = FALSE;
    g_autoptr(GArray) addresses = NULL;

    if (launch->meeting) {
        TtNetAddress one = tt_net_unix(launch->meeting);

        addresses = g_array_new(FALSE, FALSE, sizeof(TtNetAddress));
        g_array_append_val(addresses, one);
        return g_steal_pointer(&addresses);
    }
    if (launch->root_host) {
        addresses = tt_net_resolve(launch->root_host, launch->root_port, error);
        if (!addresses)
            return NULL;
        loopback = tt_net_all_loopback(addresses);
    }
    if (root && options->interface) {
        g_clear_pointer(&addresses, g_array_unref);
        addresses = tt_net_interface(options->interface, launch->root_port, error);
        if (!addresses)
            return NULL;
        loopback = tt_net_all_loopback(addresses);
    } else if (root && (!loopback || (secret && !says_loopback(launch->root_host)))) {
        /* a machine's own name is often 127.0.1.1 to itself: with a secret, that means everywhere */
        g_clear_pointer(&addresses, g_array_unref);
        addresses = tt_net_any(launch->root_port);
    }
    if (!loopback && !tt_meet_has_secret(launch, options, error))
        return NULL;
    return g_steal_pointer(&addresses);
}
