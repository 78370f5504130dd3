/* Decoding of YOLOv8's heads: each side of a box is the mean of 16 distances, weighted by a softmax. */
#include "boxes.h"

#include <math.h>
#include <stdio.h>

#define BINS 16u
#define SIDES 4u
#define LARGEST_HEAD 32768u
#define OVERLAP 0.5f

#define CANDIDATES 256u

static uint8_t distances[LARGEST_HEAD], classes[LARGEST_HEAD];
static struct box candidates[CANDIDATES];
static float weights[256]; /* Softmax weight of every byte: the core computes expf in software. */

static uint32_t elements(const struct intloom_tensor *t)
{
    return t->channels * t->height * t->width;
}

static float real(const struct intloom_tensor *t, uint8_t value)
{
    const int32_t signed_value = t->unsigned_type ? (int32_t)value - 128 : (int32_t)(int8_t)value;

    return t->scale * (float)(signed_value - t->zero_point);
}

/* Distance of one side from the anchor, in cells. */
static float distance(const struct intloom_tensor *t, uint32_t side, uint32_t cell)
{
    const uint32_t cells = t->height * t->width;
    float sum = 0.0f, weighted = 0.0f;

    for (uint32_t bin = 0; bin < BINS; bin++) {
        const float weight = weights[distances[(side * BINS + bin) * cells + cell]];
        sum += weight;
        weighted += weight * (float)bin;
    }
    return weighted / sum;
}

static float overlap(const struct box *a, const struct box *b)
{
    const float width = fminf(a->right, b->right) - fmaxf(a->left, b->left);
    const float height = fminf(a->bottom, b->bottom) - fmaxf(a->top, b->top);
    const float common = width > 0.0f && height > 0.0f ? width * height : 0.0f;
    const float all = (a->right - a->left) * (a->bottom - a->top) + (b->right - b->left) * (b->bottom - b->top) - common;

    return all > 0.0f ? common / all : 0.0f;
}

/* Insert a candidate by descending score; with equal scores the earlier one stays first. */
static uint32_t insert(uint32_t count, const struct box *found)
{
    uint32_t at = count;

    while (at > 0 && candidates[at - 1u].score < found->score)
        at--;
    if (at == CANDIDATES)
        return count;
    if (count == CANDIDATES)
        count--;
    for (uint32_t i = count; i > at; i--)
        candidates[i] = candidates[i - 1u];
    candidates[at] = *found;
    return count + 1u;
}

/* Non-maximum suppression: a box gives way to a better one of its class that it overlaps. */
static uint32_t suppress(uint32_t count, struct box boxes[BOXES_MOST])
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count && kept < BOXES_MOST; i++) {
        uint32_t k = 0;
        while (k < kept && (boxes[k].label != candidates[i].label || overlap(&boxes[k], &candidates[i]) <= OVERLAP))
            k++;
        if (k == kept)
            boxes[kept++] = candidates[i];
    }
    return kept;
}

static uint32_t decode(const struct intloom_tensor *d, const struct intloom_tensor *c, uint32_t stride, float threshold,
                       uint32_t count)
{
    const uint32_t cells = c->height * c->width;

    for (uint32_t byte = 0; byte < 256u; byte++)
        weights[byte] = expf(real(d, (uint8_t)byte));
    for (uint32_t cell = 0; cell < cells; cell++) {
        const float x = (float)(cell % c->width) + 0.5f, y = (float)(cell / c->width) + 0.5f, s = (float)stride;
        struct box found = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0};
        int best = -256;
        for (uint32_t k = 0; k < c->channels; k++) {
            const uint8_t byte = classes[k * cells + cell];
            const int value = c->unsigned_type ? byte : (int8_t)byte;
            if (value > best) {
                best = value;
                found.label = k;
            }
        }
        found.score = 1.0f / (1.0f + expf(-real(c, (uint8_t)best)));
        if (found.score < threshold)
            continue;
        found.left = (x - distance(d, 0, cell)) * s;
        found.top = (y - distance(d, 1, cell)) * s;
        found.right = (x + distance(d, 2, cell)) * s;
        found.bottom = (y + distance(d, 3, cell)) * s;
        count = insert(count, &found);
    }
    return count;
}

uint32_t find_boxes(struct intloom_device *device, const struct intloom_image *image, float threshold,
                    struct box boxes[BOXES_MOST])
{
    struct intloom_tensor input, d, c;
    uint32_t count = 0;

    if (intloom_get_tensor(image, 0, &input))
        return 0;
    for (uint32_t i = 0; i + 1u < image->tensors; i++) {
        if (intloom_get_tensor(image, i, &d) || intloom_get_tensor(image, i + 1u, &c) ||
            d.role != INTLOOM_ROLE_OUTPUT || c.role != INTLOOM_ROLE_OUTPUT || d.channels != SIDES * BINS ||
            d.height != c.height || d.width != c.width || elements(&d) > LARGEST_HEAD || elements(&c) > LARGEST_HEAD)
            continue;
        if (intloom_read_bytes(device, &d, INTLOOM_NCHW, distances, elements(&d)) ||
            intloom_read_bytes(device, &c, INTLOOM_NCHW, classes, elements(&c)))
            break;
        count = decode(&d, &c, input.width / c.width, threshold, count);
    }
    return suppress(count, boxes);
}

void print_boxes(struct intloom_device *device, const struct intloom_image *image)
{
    struct box boxes[BOXES_MOST];
    const uint32_t count = find_boxes(device, image, 0.25f, boxes);

    printf("boxes: %lu\n", (unsigned long)count);
    for (uint32_t i = 0; i < count; i++)
        printf("  class %lu, score %d %%, corners %d %d %d %d\n", (unsigned long)boxes[i].label,
               (int)(100.0f * boxes[i].score + 0.5f), (int)lroundf(boxes[i].left), (int)lroundf(boxes[i].top),
               (int)lroundf(boxes[i].right), (int)lroundf(boxes[i].bottom));
}
