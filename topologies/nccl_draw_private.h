/* nccl_draw_private.h - what placing devices, drawing links and writing SVG share. */
#pragma once
#include "topologies/nccl_draw.h"

typedef struct {
    const TtNcclXml *xml;
    GString *boxes, *wires; /* SVG; wires lie below boxes */
    int width, leaf_y, bottom;
    int *gpu_x; /* [gpu] middle of its box, 0: not drawn */
} TtDraw;

#define TT_DRAW_MARGIN 28
#define TT_LEAF_WIDTH  88
#define TT_LEAF_HEIGHT 64

/* One line of text, centred at @x; @class one of the picture's styles. */
void tt_draw_text(GString *svg, int x, int y, const char *style, const char *format, ...)
    G_GNUC_PRINTF(5, 6);

/* @tip: what a pointer over the box shows. */
void tt_draw_box(GString *svg, int from, int to, int y, int height, const char *style,
                 const char *tip);

/* All that was drawn, under a title. @is_part: of the first of several machines. Caller frees. */
char *tt_draw_page(const TtDraw *draw, gboolean is_part, const char *title);

/* NVLinks, below the GPUs; moves draw->bottom down. */
void tt_draw_nvlinks(TtDraw *draw);
