#include "models/gpus.h"

#include <string.h>

/* Datasheets unless said otherwise; NVLink figures: 20 GB/s a link (P100), 25 (V100 to H100), 50 (B200).
 * Longer lists of words are tried against shorter ones, so order does not matter. */
const TtGpuModel tt_gpu_models[] = {
    /* words, name, family, NVIDIA, sm, SMs, links, GB/s each, PCIe, memory GB/s, peers, source */
    { "p100 sxm2", "P100-SXM2", "P100", 1, 60, 56, 4, 20, 3, 732, 1, "NVIDIA P100 datasheet" },
    { "p100 pcie", "P100-PCIe", "P100 PCIe", 1, 60, 56, 0, 0, 3, 732, 1, "NVIDIA P100 datasheet" },
    { "v100", "V100-SXM2", "V100", 1, 70, 80, 6, 25, 3, 900, 1, "NVIDIA V100 datasheet" },
    { "v100 sxm3", "V100-SXM3", "V100", 1, 70, 80, 6, 25, 3, 981, 1, "NVIDIA DGX-2 datasheet" },
    { "v100 pcie", "V100-PCIe", "V100 PCIe", 1, 70, 80, 0, 0, 3, 900, 1, "NVIDIA V100 datasheet" },
    { "v100s pcie", "V100S-PCIe", "V100 PCIe", 1, 70, 80, 0, 0, 3, 1134, 1,
      "NVIDIA V100S datasheet" },
    { "t4", "T4", "T4", 1, 75, 40, 0, 0, 3, 320, 1, "NVIDIA T4 datasheet" },
    { "2080 ti", "RTX 2080 Ti", "RTX 20", 1, 75, 68, 2, 25, 3, 616, 0, "NVIDIA Turing whitepaper" },
    { "rtx 8000", "Quadro RTX 8000", "RTX 20", 1, 75, 72, 2, 25, 3, 672, 1,
      "NVIDIA Quadro RTX 8000 datasheet" },
    { "a100", "A100-SXM4-40GB", "A100", 1, 80, 108, 12, 25, 4, 1555, 1, "NVIDIA A100 datasheet" },
    { "a100 80gb", "A100-SXM4-80GB", "A100", 1, 80, 108, 12, 25, 4, 2039, 1,
      "NVIDIA A100 datasheet" },
    { "a100 pcie", "A100-PCIe", "A100 PCIe", 1, 80, 108, 0, 0, 4, 1555, 1,
      "NVIDIA A100 datasheet; the optional bridge is not assumed" },
    { "a100 80gb pcie", "A100-PCIe-80GB", "A100 PCIe", 1, 80, 108, 0, 0, 4, 1935, 1,
      "NVIDIA A100 datasheet; the optional bridge is not assumed" },
    { "a800", "A800-SXM4", "A800", 1, 80, 108, 8, 25, 4, 2039, 1, "NVIDIA A800 datasheet" },
    { "a30", "A30", "A30", 1, 80, 56, 4, 25, 4, 933, 1, "NVIDIA A30 datasheet" },
    { "a10", "A10", "A10", 1, 86, 72, 0, 0, 4, 600, 1, "NVIDIA A10 datasheet" },
    { "a10g", "A10G", "A10", 1, 86, 80, 0, 0, 4, 600, 1, "NVIDIA A10 datasheet, AWS g5" },
    { "a40", "A40", "A40", 1, 86, 84, 4, 14.0625, 4, 696, 1, "NVIDIA A40 datasheet" },
    { "a6000", "RTX A6000", "A40", 1, 86, 84, 4, 14.0625, 4, 768, 1, "NVIDIA RTX A6000 datasheet" },
    { "3090", "RTX 3090", "RTX 30", 1, 86, 82, 4, 14.0625, 4, 936, 0, "NVIDIA GA102 whitepaper" },
    { "l4", "L4", "L4", 1, 89, 58, 0, 0, 4, 300, 1, "NVIDIA L4 datasheet" },
    { "l40", "L40", "L40", 1, 89, 142, 0, 0, 4, 864, 1, "NVIDIA L40 datasheet" },
    { "l40s", "L40S", "L40", 1, 89, 142, 0, 0, 4, 864, 1, "NVIDIA L40S datasheet" },
    { "6000 ada", "RTX 6000 Ada", "L40", 1, 89, 142, 0, 0, 4, 960, 1,
      "NVIDIA RTX 6000 Ada datasheet" },
    { "4070 ti super", "RTX 4070 Ti SUPER", "RTX 40", 1, 89, 66, 0, 0, 4, 672, 0,
      "NVIDIA GeForce RTX 4070 Ti SUPER specifications" },
    { "4090", "RTX 4090", "RTX 40", 1, 89, 128, 0, 0, 4, 1008, 0, "NVIDIA Ada whitepaper" },
    { "h100", "H100-SXM5", "H100", 1, 90, 132, 18, 25, 5, 3350, 1, "NVIDIA H100 datasheet" },
    { "h100 pcie", "H100-PCIe", "H100 PCIe", 1, 90, 114, 0, 0, 5, 2000, 1,
      "NVIDIA H100 datasheet; the optional bridge is not assumed" },
    { "h100 nvl", "H100 NVL", "H100 NVL", 1, 90, 132, 12, 25, 5, 3900, 1,
      "NVIDIA H100 NVL datasheet" },
    { "h800", "H800", "H800", 1, 90, 132, 8, 25, 5, 3350, 1, "400 GB/s NVLink, as published" },
    { "h200", "H200-SXM", "H200", 1, 90, 132, 18, 25, 5, 4800, 1, "NVIDIA H200 datasheet" },
    { "h200 nvl", "H200 NVL", "H200 NVL", 1, 90, 132, 18, 25, 5, 4800, 1,
      "NVIDIA H200 NVL datasheet" },
    { "h20", "H20", "H20", 1, 90, 78, 18, 25, 5, 4000, 1, "NVIDIA H20 figures, as published" },
    { "gh200", "GH200", "GH200", 1, 90, 132, 18, 25, 5, 4000, 1,
      "NVIDIA GH200 datasheet (96 GB HBM3)" },
    { "gh200 480gb", "GH200-480GB", "GH200", 1, 90, 132, 18, 25, 5, 4000, 1,
      "NVIDIA GH200 datasheet (96 GB HBM3)" },
    { "gh200 144g", "GH200-144GB", "GH200", 1, 90, 132, 18, 25, 5, 4900, 1,
      "NVIDIA GH200 datasheet (144 GB HBM3e)" },
    { "b200", "B200", "B200", 1, 100, 148, 18, 50, 5, 8000, 1, "NVIDIA DGX B200 datasheet" },
    { "b300", "B300", "B300", 1, 103, 148, 18, 50, 6, 8000, 1, "NVIDIA DGX B300 datasheet" },
    { "gb200", "GB200", "GB200", 1, 100, 148, 18, 50, 5, 8000, 1, "NVIDIA GB200 NVL72 datasheet" },
    { "gb300", "GB300", "GB300", 1, 103, 148, 18, 50, 6, 8000, 1, "NVIDIA GB300 NVL72 datasheet" },
    { "gb10", "GB10", "GB10", 1, 121, 48, 0, 0, 5, 273, 0, "NVIDIA DGX Spark datasheet" },
    { "5090", "RTX 5090", "RTX 50", 1, 120, 170, 0, 0, 5, 1792, 0,
      "NVIDIA RTX Blackwell whitepaper" },
    { "pro 6000 blackwell", "RTX PRO 6000 Blackwell", "RTX PRO", 1, 120, 188, 0, 0, 5, 1792, 1,
      "NVIDIA RTX PRO 6000 Blackwell datasheet" },
    { "mi100", "MI100", "MI100", 0, 90, 120, 3, 46, 4, 1229, 1, "AMD MI100 datasheet" },
    { "mi210", "MI210", "MI210", 0, 90, 104, 3, 50, 4, 1638, 1, "AMD MI210 datasheet" },
    { "mi250x", "MI250X (one GCD)", "MI250X", 0, 90, 110, 8, 50, 4, 1638, 1,
      "AMD MI250X datasheet, half a module" },
    { "mi300x", "MI300X", "MI300X", 0, 94, 304, 7, 64, 5, 5300, 1, "AMD MI300X datasheet" },
    { "mi300x cpx", "MI300X (CPX partition)", "MI300X CPX", 0, 94, 38, 7, 64, 5, 662.5, 1,
      "AMD MI300X datasheet, an eighth" },
    { "mi325x", "MI325X", "MI325X", 0, 94, 304, 7, 64, 5, 6000, 1, "AMD MI325X datasheet" },
    { "mi350x", "MI350X", "MI350X", 0, 95, 256, 7, 76.8, 5, 8000, 1, "AMD MI350X datasheet" },
    { "mi355x", "MI355X", "MI350X", 0, 95, 256, 7, 76.8, 5, 8000, 1, "AMD MI355X datasheet" },
    { "r9700", "Radeon AI PRO R9700", "R9700", 0, 120, 64, 0, 0, 5, 640, 1,
      "AMD Radeon AI PRO R9700 datasheet" },
    { NULL },
};

/* "NVIDIA A100-SXM4-40GB" becomes " nvidia a100 sxm4 40gb ". */
static char *
spaced(const char *name)
{
    GString *out = g_string_new(" ");

    for (const char *c = name; *c && out->len < 256; c++)
        if (g_ascii_isalnum(*c))
            g_string_append_c(out, g_ascii_tolower(*c));
        else if (out->str[out->len - 1] != ' ')
            g_string_append_c(out, ' ');
    if (out->str[out->len - 1] != ' ')
        g_string_append_c(out, ' ');
    return g_string_free(out, FALSE);
}

/* How many words of @words there are, all of them in @name; 0 if one is missing. */
static guint
n_matching(const char *words, const char *name)
{
    g_auto(GStrv) list = g_strsplit(words, " ", 0);
    guint n = 0;

    for (; list[n]; n++) {
        g_autofree char *word = g_strconcat(" ", list[n], " ", NULL);

        if (!strstr(name, word))
            return 0;
    }
    return n;
}

const TtGpuModel *
tt_gpu_find(const char *name)
{
    g_autofree char *text = spaced(name);
    const TtGpuModel *best = NULL;
    guint best_n = 0;

    for (const TtGpuModel *m = tt_gpu_models; m->name; m++) {
        guint n = n_matching(m->words, text);

        if (n > best_n) {
            best = m;
            best_n = n;
        }
    }
    return best;
}

char *
tt_gpu_names(void)
{
    GString *out = g_string_new(NULL);

    for (const TtGpuModel *m = tt_gpu_models; m->name; m++)
        g_string_append_printf(out, "%s%s", out->len ? ", " : "", m->name);
    return g_string_free(out, FALSE);
}
