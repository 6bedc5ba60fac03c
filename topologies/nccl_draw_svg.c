/* nccl_draw_svg - text, boxes and the page around them. */
#include "topologies/nccl_draw_private.h"

void
tt_draw_text(GString *svg, int x, int y, const char *style, const char *format, ...)
{
    g_autofree char *text = NULL, *valid = NULL, *escaped = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    valid = g_utf8_make_valid(text, -1);
    escaped = g_markup_escape_text(valid, -1);
    g_string_append_printf(svg, "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, style,
                           escaped);
}

void
tt_draw_box(GString *svg, int from, int to, int y, int height, const char *style, const char *tip)
{
    g_autofree char *escaped = g_markup_escape_text(tip, -1);

    g_string_append_printf(svg,
                           "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" "
                           "class=\"%s\"><title>%s</title></rect>\n",
                           from, y, to - from, height, style, escaped);
}

static const char style[] =
    "<style>\n"
    "text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;fill:#263238;text-anchor:middle}\n"
    ".title{font-size:17px;font-weight:bold;text-anchor:start}\n"
    ".sub{font-size:12px;fill:#607d8b;text-anchor:start}\n"
    ".name{font-size:13px;font-weight:bold}.small{font-size:10.5px}.label{font-size:10.5px;fill:#"
    "455a64}\n"
    ".left{text-anchor:start}.light{fill:#fff}\n"
    "path{fill:none}.pcie{stroke:#90a4ae}.socket{stroke:#5c6bc0}.c2c{stroke:#ef9a1a}\n"
    ".nvlink{stroke:#43a047;stroke-linecap:round}\n"
    ".cpu{fill:#3949ab}.switch{fill:#eceff1;stroke:#90a4ae}.gpu{fill:#2e7d32}.nic{fill:#c2571a}\n"
    ".nvswitch{fill:#e8f5e9;stroke:#43a047;stroke-width:1.5}\n"
    "</style>\n";

char *
tt_draw_page(const TtDraw *draw, gboolean is_part, const char *title)
{
    const TtNcclXml *xml = draw->xml;
    GString *svg = g_string_new(NULL);
    int right = xml->c2c->len ? 68 : TT_DRAW_MARGIN; /* room for the last GPU's label */
    int width = MAX(draw->width + right, 480), height = draw->bottom + TT_DRAW_MARGIN;

    g_string_append_printf(svg,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                           "viewBox=\"0 0 %d %d\">\n%s<rect width=\"100%%\" height=\"100%%\" "
                           "fill=\"#fff\"/>\n",
                           width, height, width, height, style);
    tt_draw_text(svg, TT_DRAW_MARGIN, 34, "title", "%s", title);
    if (is_part)
        tt_draw_text(svg, TT_DRAW_MARGIN, 56, "sub",
                     "first machine of an NVLink domain of %u GPUs and %u NICs", xml->gpu->len,
                     xml->net->len);
    else
        tt_draw_text(svg, TT_DRAW_MARGIN, 56, "sub", "one node as NCCL sees it: %u GPU%s, %u NIC%s",
                     xml->gpu->len, xml->gpu->len == 1 ? "" : "s", xml->net->len,
                     xml->net->len == 1 ? "" : "s");
    g_string_append_len(svg, draw->wires->str, (gssize)draw->wires->len);
    g_string_append_len(svg, draw->boxes->str, (gssize)draw->boxes->len);
    g_string_append(svg, "</svg>\n");
    return g_string_free(svg, FALSE);
}
