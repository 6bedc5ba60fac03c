/* nccl_draw.h - a node as NCCL sees it, as an SVG picture.
 *
 * CPUs and PCIe switches are bars over what hangs below them, GPUs and NICs one row, NVLinks below that
 * row. Of an NVLink domain of several machines the first is drawn. No scripts, no fonts of its own.
 */
#pragma once
#include "topologies/nccl_xml.h"

/* @title: what stands above it. Caller frees. */
char *tt_nccl_draw(const TtNcclXml *xml, const char *title);
