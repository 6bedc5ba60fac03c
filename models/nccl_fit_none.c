#include "models/nccl_fit.h"

gboolean
tt_nccl_fit(TtNcclCosts *costs, const TtFitRow *rows, guint n_rows, guint n_sites, GError **error)
{
    (void)costs;
    (void)rows;
    (void)n_rows;
    (void)n_sites;
    g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                "built without GSL: fitting needs it (libgsl-dev), then build again");
    return FALSE;
}
