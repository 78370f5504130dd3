/* Tensors: between the caller's arrays and the layouts of the memory window. */
#include <stddef.h>
#include <string.h>

#include "intloom_runtime.h"

#define PIXEL_BYTES 4u
#define SIGN_BIT 0x80u

/* Byte of an element in the tensor's memory. */
static uint32_t memory_index(const struct intloom_tensor *t, uint32_t c, uint32_t y, uint32_t x)
{
    if (t->layout == INTLOOM_LAYOUT_PIXELS4) {
        const uint32_t row = (PIXEL_BYTES * t->width + t->word_bytes - 1u) / t->word_bytes * t->word_bytes;
        return y * row + x * PIXEL_BYTES + c;
    }
    return ((c / t->word_bytes * t->height + y) * t->width + x) * t->word_bytes + c % t->word_bytes;
}

/* Index of an element in the caller's array. */
static uint32_t array_index(const struct intloom_tensor *t, enum intloom_order order, uint32_t c, uint32_t y, uint32_t x)
{
    return order == INTLOOM_NHWC ? (y * t->width + x) * t->channels + c : (c * t->height + y) * t->width + x;
}

/* fp32 division, round to nearest even, zero point, saturation: the order of QuantizeLinear. */
static uint8_t quantize(const struct intloom_tensor *t, float value)
{
    const float limit = 512.0f;
    float scaled = value / t->scale;
    float part;
    int32_t code;

    if (!(scaled > -limit)) /* also NaN */
        scaled = -limit;
    if (scaled > limit)
        scaled = limit;
    code = (int32_t)scaled;
    part = scaled - (float)code;
    if (part > 0.5f || (part == 0.5f && code % 2 != 0))
        code++;
    if (part < -0.5f || (part == -0.5f && code % 2 != 0))
        code--;
    code += t->zero_point;
    return (uint8_t)(code < -128 ? -128 : code > 127 ? 127 : code);
}

static int32_t signed_value(uint8_t byte)
{
    return (int32_t)(byte ^ SIGN_BIT) - (int32_t)SIGN_BIT;
}

static int check(const struct intloom_device *device, const struct intloom_tensor *tensor, const void *values,
                 uint32_t count, enum intloom_order order)
{
    if (!device || !tensor || !values || (order != INTLOOM_NCHW && order != INTLOOM_NHWC))
        return INTLOOM_E_ARGUMENT;
    if (!device->image)
        return INTLOOM_E_NOT_LOADED;
    if (tensor->window_at > device->window.bytes || tensor->bytes > device->window.bytes - tensor->window_at)
        return INTLOOM_E_ARGUMENT;
    if ((uint64_t)tensor->channels * tensor->height * tensor->width != count)
        return INTLOOM_E_ARGUMENT;
    return INTLOOM_OK;
}

static void flush(struct intloom_device *device, uint8_t *memory, uint32_t bytes)
{
    if (device->transport.flush)
        device->transport.flush(device->transport.context, memory, bytes);
}

static void invalidate(struct intloom_device *device, uint8_t *memory, uint32_t bytes)
{
    if (device->transport.invalidate)
        device->transport.invalidate(device->transport.context, memory, bytes);
}

/* Write all elements, from floats or, if `floats` is null, from bytes. */
static int write_tensor(struct intloom_device *device, const struct intloom_tensor *t, enum intloom_order order,
                        const float *floats, const uint8_t *bytes, uint32_t count)
{
    const uint8_t flip = t && t->unsigned_type ? SIGN_BIT : 0;
    int result = check(device, t, floats ? (const void *)floats : bytes, count, order);
    uint8_t *memory;

    if (result)
        return result;
    memory = device->window.memory + t->window_at;
    memset(memory, 0, t->bytes);
    for (uint32_t c = 0; c < t->channels; c++)
        for (uint32_t y = 0; y < t->height; y++)
            for (uint32_t x = 0; x < t->width; x++) {
                const uint32_t i = array_index(t, order, c, y, x);
                memory[memory_index(t, c, y, x)] = floats ? quantize(t, floats[i]) : (uint8_t)(bytes[i] ^ flip);
            }
    flush(device, memory, t->bytes);
    return INTLOOM_OK;
}

/* Read all elements, as floats or, if `floats` is null, as bytes. */
static int read_tensor(struct intloom_device *device, const struct intloom_tensor *t, enum intloom_order order,
                       float *floats, uint8_t *bytes, uint32_t count)
{
    const uint8_t flip = t && t->unsigned_type ? SIGN_BIT : 0;
    int result = check(device, t, floats ? (const void *)floats : bytes, count, order);
    uint8_t *memory;

    if (result)
        return result;
    memory = device->window.memory + t->window_at;
    invalidate(device, memory, t->bytes);
    for (uint32_t c = 0; c < t->channels; c++)
        for (uint32_t y = 0; y < t->height; y++)
            for (uint32_t x = 0; x < t->width; x++) {
                const uint32_t i = array_index(t, order, c, y, x);
                const uint8_t byte = memory[memory_index(t, c, y, x)];
                if (floats)
                    floats[i] = (float)(signed_value(byte) - t->zero_point) * t->scale;
                else
                    bytes[i] = (uint8_t)(byte ^ flip);
            }
    return INTLOOM_OK;
}

int intloom_write_floats(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                         const float *values, uint32_t count)
{
    return values ? write_tensor(device, tensor, order, values, NULL, count) : INTLOOM_E_ARGUMENT;
}

int intloom_write_bytes(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                        const void *values, uint32_t count)
{
    return write_tensor(device, tensor, order, NULL, values, count);
}

int intloom_read_floats(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                        float *values, uint32_t count)
{
    return values ? read_tensor(device, tensor, order, values, NULL, count) : INTLOOM_E_ARGUMENT;
}

int intloom_read_bytes(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                       void *values, uint32_t count)
{
    return read_tensor(device, tensor, order, NULL, values, count);
}

/* The layouts may differ, so elements are copied one by one; the rest of the words becomes zero. */
static void copy_tensor(struct intloom_device *device, const struct intloom_tensor *from, const struct intloom_tensor *to)
{
    uint8_t *source = device->window.memory + from->window_at;
    uint8_t *target = device->window.memory + to->window_at;

    invalidate(device, source, from->bytes);
    memset(target, 0, to->bytes);
    for (uint32_t c = 0; c < to->channels; c++)
        for (uint32_t y = 0; y < to->height; y++)
            for (uint32_t x = 0; x < to->width; x++)
                target[memory_index(to, c, y, x)] = source[memory_index(from, c, y, x)];
    flush(device, target, to->bytes);
}

int intloom_pass_tensors(struct intloom_device *device, uint32_t index)
{
    struct intloom_region region;
    struct intloom_tensor from, to;
    int result;

    if (!device)
        return INTLOOM_E_ARGUMENT;
    if (!device->image)
        return INTLOOM_E_NOT_LOADED;
    result = intloom_get_region(device->image, index, &region);
    for (uint32_t i = 0; !result && i < region.tensors; i++) {
        result = intloom_get_tensor(device->image, region.first_tensor + i, &to);
        if (result || to.source == INTLOOM_NO_TENSOR)
            continue;
        result = intloom_get_tensor(device->image, to.source, &from);
        if (!result)
            copy_tensor(device, &from, &to);
    }
    return result;
}
