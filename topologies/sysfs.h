/* sysfs.h - what the kernel's files say of PCI devices, NICs and CPUs. All paths are below @root, "" for this
 * machine: tests bring a machine of their own.
 */
#pragma once
#include <glib.h>

/* A file's text without the white space around it; NULL if there is none. Caller frees. */
char *tt_sysfs_read(const char *root, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The number a file begins with; @other if there is none. */
gint64 tt_sysfs_number(gint64 other, const char *root, const char *format, ...) G_GNUC_PRINTF(3, 4);
gboolean tt_sysfs_exists(const char *root, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Names in a folder, mlx5_2 before mlx5_10; empty if there is none. g_strfreev(). */
char **tt_sysfs_list(const char *root, const char *folder);

/* Bus ids of the PCI devices on the way from the root complex to @path, a link to a device; empty if it does not
 * hang on PCI. g_strfreev(). */
char **tt_sysfs_pci_way(const char *root, const char *path);

gboolean tt_sysfs_is_bus_id(const char *text); /* "0000:1b:00.0" */
