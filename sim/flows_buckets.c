/* flows_buckets.c - links that are shaped by a token bucket: after a pause some bytes pass at once.
 *
 * A bucket of b bytes is refilled at the link's rate R and emptied by what passes, so that in any time t at most
 * R t + b bytes do. A message that begins finds some tokens; so many of its bytes cost nothing, the
 * rest flows at R like on any other link. While the link is busy it carries what has begun, and what it could have carried
 * beyond that refills the bucket: exact for one flow at a time, close for several.
 */
#include "sim/flows_private.h"

void
tt_flows_add_bucket(TtFlows *self, guint32 link, double size_bytes)
{
    Bucket bucket = { size_bytes, size_bytes, 0, 0 };

    if (!self->buckets)
        self->buckets = g_array_new(FALSE, FALSE, sizeof(Bucket));
    g_array_append_val(self->buckets, bucket);
    self->link_shares[link].bucket = self->buckets->len;
}

void
tt_flows_fill_buckets(TtFlows *self)
{
    for (guint i = 0; i < self->buckets->len; i++) {
        Bucket *b = &g_array_index(self->buckets, Bucket, i);

        *b = (Bucket){ b->size_bytes, b->size_bytes, 0, 0 };
    }
}

TtTime
tt_flows_bucket_ps(const TtFlows *self)
{
    TtTime most_ps = 0;

    for (guint32 l = 0; self->buckets && l < self->n_links; l++) {
        const LinkShare *share = &self->link_shares[l];

        if (share->bucket > 0) {
            const Bucket *b = &g_array_index(self->buckets, Bucket, share->bucket - 1);

            most_ps = MAX(most_ps, tt_seconds_to_ps(b->size_bytes / share->capacity));
        }
    }
    return most_ps;
}

static Bucket *
bucket_of(TtFlows *self, guint32 link)
{
    guint32 bucket = self->link_shares[link].bucket;

    return bucket ? &g_array_index(self->buckets, Bucket, bucket - 1) : NULL;
}

static double
tokens_now(const TtFlows *self, const Bucket *b, guint32 link)
{
    double refilled =
        self->link_shares[link].capacity * tt_ps_to_seconds(self->queue->now_ps - b->since_ps);

    return CLAMP(b->tokens_bytes + refilled - b->begun_bytes, 0, b->size_bytes);
}

double
tt_flows_take_tokens(TtFlows *self, guint32 flow, double bytes)
{
    const Flow *f = &self->flows[flow];
    double passes = bytes;
    gboolean shaped = FALSE;

    for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
        const Bucket *b = bucket_of(self, self->hops[h].link);

        if (b)
            passes = MIN(passes, tokens_now(self, b, self->hops[h].link));
        shaped |= b != NULL;
    }
    if (!shaped)
        return 0;
    for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
        Bucket *b = bucket_of(self, self->hops[h].link);

        if (!b)
            continue;
        if (self->links[self->hops[h].link].n == 0) { /* from rest */
            b->tokens_bytes = tokens_now(self, b, self->hops[h].link);
            b->since_ps = self->queue->now_ps;
            b->begun_bytes = 0;
        }
        b->begun_bytes += bytes;
    }
    return passes;
}

void
tt_flows_bucket_rests(TtFlows *self, guint32 link)
{
    Bucket *b = bucket_of(self, link);

    if (!b)
        return;
    b->tokens_bytes = tokens_now(self, b, link);
    b->since_ps = self->queue->now_ps;
    b->begun_bytes = 0;
}
