#include "sim/partition.h"

#include <string.h>

/* Members of one class that see the same. */
typedef struct {
    guint32 class, n, number; /* number: what the group will be called */
    guint64 seen;
} Group;

typedef struct {
    const TtLabelledGraph *graph;
    guint32 *class_of;
    guint32 n_classes, classes_room;
    guint32 *size;      /* [class] members */
    guint32 *n_looking; /* [class] of them, those that look again */
    guint32 *largest;   /* [class] largest group among these, + 1 */
    guint64 *seen;      /* [class] what its members see */
    guint32 *looking, *next, n_looking_now, n_next;
    guint8 *is_next;
    guint32 *group_of; /* [place in looking] */
    Group *groups;
    guint32 n_groups;
    guint32 *slots, n_slots; /* open hash of groups + 1 */
} Refinement;

static void
add_class(Refinement *self)
{
    if (self->n_classes == self->classes_room) {
        self->classes_room = MAX(64, 2 * self->classes_room);
        self->size = g_renew(guint32, self->size, self->classes_room);
        self->n_looking = g_renew(guint32, self->n_looking, self->classes_room);
        self->largest = g_renew(guint32, self->largest, self->classes_room);
        self->seen = g_renew(guint64, self->seen, self->classes_room);
    }
    self->size[self->n_classes] = self->n_looking[self->n_classes] = 0;
    self->largest[self->n_classes] = 0;
    self->seen[self->n_classes++] = 0;
}

static guint64
look(const Refinement *self, guint32 node)
{
    const TtLabelledGraph *g = self->graph;
    guint64 sum = g->colour[node];

    for (guint32 e = g->first[node]; e < g->first[node + 1]; e++)
        sum += tt_mix(self->class_of[g->edge[e].node], g->edge[e].label);
    return sum;
}

/* Each group of nodes that look is found by its class and what they see. */
static guint32
find_group(Refinement *self, guint32 class, guint64 seen)
{
    guint32 mask = self->n_slots - 1, i = (guint32)(tt_mix(seen, class) >> 32) & mask;

    for (;; i = (i + 1) & mask) {
        const Group *group = &self->groups[self->slots[i] - 1];

        if (self->slots[i] == 0)
            break;
        if (group->class == class && group->seen == seen)
            return self->slots[i] - 1;
    }
    self->groups[self->n_groups] = (Group){ .class = class, .seen = seen };
    self->slots[i] = ++self->n_groups;
    return self->n_groups - 1;
}

static void
form_groups(Refinement *self)
{
    self->n_groups = 0;
    self->n_slots = 64;
    while (self->n_slots < 2 * self->n_looking_now)
        self->n_slots *= 2;
    memset(self->slots, 0, self->n_slots * sizeof *self->slots);
    for (guint32 i = 0; i < self->n_looking_now; i++) {
        guint32 node = self->looking[i], class = self->class_of[node];

        self->group_of[i] = find_group(self, class, look(self, node));
        self->groups[self->group_of[i]].n++;
        self->n_looking[class]++;
    }
}

/* Who keeps the class's number: those who see what members that need not look again see; if all look,
 * the largest group. */
static void
number_groups(Refinement *self)
{
    guint32 n_before = self->n_classes;

    for (guint32 i = 0; i < self->n_groups; i++) {
        guint32 *largest = &self->largest[self->groups[i].class];

        if (*largest == 0 || self->groups[i].n > self->groups[*largest - 1].n)
            *largest = i + 1;
    }
    for (guint32 i = 0; i < self->n_groups; i++) {
        Group *group = &self->groups[i];
        gboolean all = self->n_looking[group->class] == self->size[group->class];
        gboolean keeps =
            all ? self->largest[group->class] == i + 1 : group->seen == self->seen[group->class];

        group->number = group->class;
        if (keeps)
            continue;
        group->number = self->n_classes;
        add_class(self);
        self->seen[group->number] = group->seen;
        self->size[group->number] = group->n;
    }
    for (guint32 i = 0; i < self->n_groups; i++) {
        Group *group = &self->groups[i];

        if (group->number < n_before) { /* kept */
            if (self->n_looking[group->class] == self->size[group->class])
                self->seen[group->class] = group->seen;
        }
    }
    for (guint32 i = 0; i < self->n_groups; i++) {
        Group *group = &self->groups[i];

        self->largest[group->class] = self->n_looking[group->class] = 0;
    }
    for (guint32 i = 0; i < self->n_groups; i++)
        if (self->groups[i].number != self->groups[i].class)
            self->size[self->groups[i].class] -= self->groups[i].n;
}

static void
wake_neighbours(Refinement *self, guint32 node)
{
    const TtLabelledGraph *g = self->graph;

    for (guint32 e = g->first[node]; e < g->first[node + 1]; e++) {
        guint32 other = g->edge[e].node;

        if (self->is_next[other])
            continue;
        self->is_next[other] = TRUE;
        self->next[self->n_next++] = other;
    }
}

/* FALSE if nobody need look again. */
static gboolean
refine(Refinement *self)
{
    guint32 *looked = self->looking;

    form_groups(self);
    number_groups(self);
    self->n_next = 0;
    for (guint32 i = 0; i < self->n_looking_now; i++) {
        guint32 node = self->looking[i], number = self->groups[self->group_of[i]].number;

        if (self->class_of[node] == number)
            continue;
        self->class_of[node] = number;
        wake_neighbours(self, node);
    }
    for (guint32 i = 0; i < self->n_next; i++)
        self->is_next[self->next[i]] = FALSE;
    self->looking = self->next;
    self->n_looking_now = self->n_next;
    self->next = looked;
    return self->n_looking_now > 0;
}

/* Classes in order of their first members. */
static guint32
renumber(const Refinement *self)
{
    guint32 n = self->graph->n_nodes, n_found = 0;
    g_autofree guint32 *found = g_new0(guint32, MAX(1, self->n_classes));

    for (guint32 i = 0; i < n; i++) {
        guint32 *number = &found[self->class_of[i]];

        if (*number == 0)
            *number = ++n_found;
        self->class_of[i] = *number - 1;
    }
    return n_found;
}

guint32
tt_partition(const TtLabelledGraph *graph, guint32 *class_of)
{
    guint32 n = graph->n_nodes, n_classes;
    Refinement self = { .graph = graph, .class_of = class_of };

    self.looking = g_new(guint32, MAX(1, n));
    self.next = g_new(guint32, MAX(1, n));
    self.is_next = g_new0(guint8, MAX(1, n));
    self.group_of = g_new(guint32, MAX(1, n));
    self.groups = g_new(Group, MAX(1, n));
    self.slots = g_new(guint32, 64 + 4 * (gsize)n);
    add_class(&self);
    self.size[0] = n;
    for (guint32 i = 0; i < n; i++) {
        self.looking[i] = i;
        class_of[i] = 0;
    }
    self.n_looking_now = n;
    while (refine(&self))
        ;
    n_classes = renumber(&self);
    g_free(self.looking);
    g_free(self.next);
    g_free(self.is_next);
    g_free(self.group_of);
    g_free(self.groups);
    g_free(self.slots);
    g_free(self.size);
    g_free(self.n_looking);
    g_free(self.largest);
    g_free(self.seen);
    return n_classes;
}
