#include "exec/checksum.h"

#include <string.h>

#define FACTOR G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)

guint16
tt_checksum(const guint8 *data, gsize bytes)
{
    guint64 lanes[4] = { 1, 2, 3, 4 }, hash = bytes; /* four, so that multiplications overlap */

    for (; bytes >= sizeof lanes; bytes -= sizeof lanes, data += sizeof lanes) {
        guint64 words[4];

        memcpy(words, data, sizeof words);
        for (guint i = 0; i < 4; i++) {
            lanes[i] = (lanes[i] ^ words[i]) * FACTOR;
            lanes[i] ^= lanes[i] >> 32;
        }
    }
    for (guint i = 0; i < 4; i++)
        hash = (hash ^ lanes[i]) * FACTOR;
    for (; bytes > 0; bytes--, data++)
        hash = ((hash ^ *data) * FACTOR) ^ (hash >> 32);
    hash ^= hash >> 32;
    hash ^= hash >> 16;
    return (hash & 0xffff) ? (guint16)hash : 1;
}

static inline gsize
payload_start(gsize end)
{
    return end <= TT_SLOT_HEAD_BYTES ? TT_SLOT_SMALL_START : TT_SLOT_HEAD_BYTES;
}

guint64
tt_checked_info(TtRank *self, const TtMove *m)
{
    guint64 end = m->offset + m->bytes, info = end;
    gsize start = payload_start(end);

    if (self->checksum)
        info |= (guint64)tt_checksum(m->out->slot + start, end - start) << TT_INFO_CHECKSUM_SHIFT;
    if (self->spoil_next)
        m->out->slot[start] ^= 1;
    self->spoil_next = FALSE;
    return info;
}

gboolean
tt_checksum_is_good(TtRank *self, const TtPort *in)
{
    guint64 info = tt_port_head(in)->info, end = TT_INFO_END(info);
    gsize start = payload_start(end);
    g_autoptr(GError) error = NULL;

    if (tt_checksum(in->slot + start, end - start) == TT_INFO_CHECKSUM(info))
        return TRUE;
    g_set_error(
        &error, TT_EXEC_ERROR, TT_EXEC_ERROR_CORRUPT,
        "message %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
        " bytes from rank %u to rank %u arrived with another checksum than it was sent with",
        in->count, end - start, in->peer, self->rank);
    tt_rank_complain(self, in->peer, error);
    return FALSE;
}
