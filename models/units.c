#include "models/units.h"

GQuark
tt_units_error_quark(void)
{
    return g_quark_from_static_string("tt-units-error");
}
