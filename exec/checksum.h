/* checksum.h - sixteen bits over every message, on request: finds what memory, drivers and networks change.
 */
#pragma once
#include "exec/rank.h"

/* Of @bytes of @data; never 0, which means "none". */
guint16 tt_checksum(const guint8 *data, gsize bytes);

/* The info of the message whose last piece is @m, with its checksum if this rank makes them. Spoils a bit
 * afterwards if a fault asks for it. */
guint64 tt_checked_info(TtRank *self, const TtMove *m);

/* Does the message that has arrived at @in have the checksum it was sent with? If not, complains. */
gboolean tt_checksum_is_good(TtRank *self, const TtPort *in);
