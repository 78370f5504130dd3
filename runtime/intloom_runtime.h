/* Driver of the accelerator: checks hardware and image, loads programs, moves tensors, runs regions.
 *
 * C99, without allocation and without an operating system. All state is in `struct intloom_device`. Functions return
 * INTLOOM_OK or one of the other results. Every loop that waits for the hardware has a limit.
 */
#ifndef INTLOOM_RUNTIME_H
#define INTLOOM_RUNTIME_H

#include <stdint.h>

#include "intloom_image.h"
#include "intloom_registers.h"

#ifdef __cplusplus
extern "C" {
#endif

enum intloom_result {
    INTLOOM_OK = 0,
    INTLOOM_PENDING = 1,           /* The program still runs. */
    INTLOOM_E_ARGUMENT = 2,        /* A null pointer, an index out of range, or a wrong number of elements. */
    INTLOOM_E_BUS = 3,             /* A register access failed, or registers do not keep what was written. */
    INTLOOM_E_NOT_INTLOOM = 4,     /* Register MAGIC has another value. */
    INTLOOM_E_REGISTER_VERSION = 5, /* The register map has another version. */
    INTLOOM_E_ISA_VERSION = 6,     /* Hardware or image has another instruction set version. */
    INTLOOM_E_IMAGE_MAGIC = 7,     /* The bytes are no image. */
    INTLOOM_E_IMAGE_VERSION = 8,   /* The image has another format version. */
    INTLOOM_E_IMAGE_TRUNCATED = 9, /* There are fewer bytes than the image has. */
    INTLOOM_E_IMAGE_CRC = 10,      /* The checksum does not match. */
    INTLOOM_E_IMAGE_RECORD = 11,   /* A record of the image contradicts another one. */
    INTLOOM_E_FINGERPRINT = 12,    /* The image was compiled for other hardware parameters. */
    INTLOOM_E_ALIGNMENT = 13,      /* The memory window is not aligned to INTLOOM_WINDOW_ALIGNMENT. */
    INTLOOM_E_WINDOW_BYTES = 14,   /* The memory window is smaller than the image needs. */
    INTLOOM_E_WINDOW_ADDRESS = 15, /* The accelerator's address width does not reach the memory window. */
    INTLOOM_E_BUSY = 16,           /* A program or a reset is in progress. */
    INTLOOM_E_HALTED = 17,         /* The accelerator stopped with an error before: reset it first. */
    INTLOOM_E_TIMEOUT = 18,        /* The wait limit was reached, or the idle hook ended the wait. */
    INTLOOM_E_STOPPED = 19,        /* The accelerator stopped with an error: see intloom_read_status. */
    INTLOOM_E_NO_TENSOR = 20,      /* No tensor has this name and role. */
    INTLOOM_E_NOT_LOADED = 21,     /* No image is loaded. */
    INTLOOM_E_HOST = 22,           /* The host part before a region failed. */
    INTLOOM_RESULTS = 23
};

#define INTLOOM_WINDOW_ALIGNMENT 64u /* Of the window, for CPU and bus; a multiple of the cache line. */
#define INTLOOM_WAIT_LIMIT 100000000u
#define INTLOOM_WAIT_MS 10000u
#define INTLOOM_WATCHDOG (1u << 20)

/* What a system provides: register access, and hooks of its operating system. Offsets are those of intloom_registers.h.
 * Hooks that are null are left out; initialize by name, so that further hooks are null. */
struct intloom_transport {
    /* One register access; a result other than 0 is a bus error. */
    int (*read32)(void *context, uint32_t offset, uint32_t *value);
    int (*write32)(void *context, uint32_t offset, uint32_t value);
    /* Called between two polls while the driver waits, to sleep until an interrupt or for a moment; a result other
     * than 0 ends the wait. */
    int (*idle)(void *context);
    /* Cache maintenance; null where the window is not cached or the accelerator is coherent.
     * `flush` writes dirty lines back to memory; `invalidate` discards lines. A range may begin and end inside a line:
     * the hook takes whole lines. Loading flushes and invalidates the window of the image. */
    void (*flush)(void *context, void *start, uint32_t bytes);
    void (*invalidate)(void *context, void *start, uint32_t bytes);
    /* Orders accesses to memory and registers: before START, and after STATUS. Null: the CPU's own instruction. */
    void (*barrier)(void *context);
    /* Milliseconds of a clock that wraps at 2^32; waits then end after `wait_ms` instead of `wait_limit` polls. */
    uint32_t (*clock)(void *context);
    /* A mutex that threads of one device share; intloom_run holds it for the whole run. */
    void (*lock)(void *context);
    void (*unlock)(void *context);
    void *context;
};

/* Memory that CPU and accelerator share. */
struct intloom_window {
    uint8_t *memory;      /* For the CPU. */
    uint64_t bus_address; /* For the accelerator. */
    uint32_t bytes;
};

/* A checked image. The bytes must stay in memory while the image is in use. */
struct intloom_image {
    const uint8_t *bytes;
    uint32_t isa_version, fingerprint, word_bytes, window_bytes;
    uint32_t regions, regions_at, tensors, tensors_at, names_at;
};

struct intloom_region {
    uint32_t window_at, window_bytes, instructions, code_at, code_bytes, code_to, data_at, data_bytes, data_to;
    uint32_t first_tensor, tensors, cycles;
};

struct intloom_tensor {
    const char *name;
    enum intloom_role role;
    enum intloom_layout layout;
    uint32_t channels, height, width, window_at, bytes, word_bytes;
    float scale;        /* real = scale * (int8 value - zero_point) */
    int32_t zero_point; /* Of the int8 values. */
    int unsigned_type;  /* The model's type is uint8, 128 more than the int8 values. */
    uint32_t source;    /* Index of the tensor of an earlier region with this content, or INTLOOM_NO_TENSOR. */
};

struct intloom_device {
    struct intloom_transport transport;
    struct intloom_window window;
    const struct intloom_image *image; /* Null until one is loaded. */
    uint32_t isa_version, fingerprint, word_bytes, address_bits;
    /* Settings; intloom_probe sets them, the caller may change them. */
    uint32_t wait_limit; /* Polls after which a wait ends, without a clock. */
    uint32_t wait_ms;    /* Milliseconds after which a wait ends, with a clock. */
    uint32_t watchdog;   /* Cycles without progress after which the accelerator stops; 0: never. */
    int use_interrupt;   /* The accelerator raises interrupts. A wait reads STATUS whenever the idle hook returns. */
    volatile uint32_t interrupt_flags;
};

struct intloom_status {
    int busy, done, error;
    enum intloom_cause cause;
    enum intloom_unit unit;
    uint32_t instruction; /* Index of the instruction that caused the error; of a parity error, the word's address. */
};

/* Order of elements in the caller's arrays. */
enum intloom_order {
    INTLOOM_NCHW = 0, /* [channel][row][pixel], as in ONNX */
    INTLOOM_NHWC = 1  /* [row][pixel][channel], as cameras and displays have it */
};

/* The host's part of the model before region `region`: it fills the inputs that no earlier region computes. A result
 * other than 0 ends the run with INTLOOM_E_HOST. */
typedef int (*intloom_host_part)(void *context, struct intloom_device *device, uint32_t region);

/* Check the hardware behind a transport, and the alignment of the window. Changes no state of the hardware but the
 * watchdog. */
int intloom_probe(struct intloom_device *device, const struct intloom_transport *transport,
                  const struct intloom_window *window);

/* Check an image: length, checksum, and every record. After a failure the image is empty: it cannot be loaded. */
int intloom_open_image(struct intloom_image *image, const void *bytes, uint32_t length);

/* The same without the checksum, which reads every byte: for an image that is linked into the firmware or that a boot
 * loader has verified. */
int intloom_open_verified_image(struct intloom_image *image, const void *bytes, uint32_t length);

/* Check that an image fits hardware and window, and copy programs and constants into the window, whose lines are clean
 * and invalid then. A failure changes nothing: an image that was loaded before stays loaded. */
int intloom_load_image(struct intloom_device *device, const struct intloom_image *image);

/* Tensors of an image, by index over all regions, or by name and role. */
int intloom_get_region(const struct intloom_image *image, uint32_t index, struct intloom_region *region);
int intloom_get_tensor(const struct intloom_image *image, uint32_t index, struct intloom_tensor *tensor);
int intloom_find_tensor(const struct intloom_image *image, const char *name, enum intloom_role role,
                        struct intloom_tensor *tensor);

/* Write or read all elements of a tensor of the loaded image. `count` must be channels * height * width. Floats are
 * quantized with round to nearest even and saturation, and NaN becomes the least value; bytes have the model's type,
 * int8 or uint8. */
int intloom_write_floats(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                         const float *values, uint32_t count);
int intloom_write_bytes(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                        const void *values, uint32_t count);
int intloom_read_floats(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                        float *values, uint32_t count);
int intloom_read_bytes(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                       void *values, uint32_t count);

/* Copy the inputs of a region that earlier regions hold. */
int intloom_pass_tensors(struct intloom_device *device, uint32_t region);

/* Start a region; ask once whether it has ended; wait for its end. `poll` and `wait` return INTLOOM_E_STOPPED when the
 * accelerator stopped with an error. After a time-out or an error, reset the accelerator. */
int intloom_start(struct intloom_device *device, uint32_t region);
int intloom_poll(struct intloom_device *device);
int intloom_wait(struct intloom_device *device);

/* For the interrupt handler: take and clear the interrupt. */
int intloom_interrupt(struct intloom_device *device);

/* Run all regions in order. Before each: pass tensors, then call `host_part`, which may be null if the caller has
 * written all inputs. */
int intloom_run(struct intloom_device *device, intloom_host_part host_part, void *context);

/* Run `frames` frames through two windows, double buffered: while the accelerator runs the first region of a frame in one
 * window, the host takes the results of the frame before from the other one and writes the inputs of the next.
 * `devices` have the same transport and image and a window each; probe both before the first run. `host_part` is called
 * before each region as in intloom_run, and with the number of regions when the results of a frame are there. */
int intloom_run_frames(struct intloom_device *const devices[2], uint32_t frames, intloom_host_part host_part,
                       void *context);

/* Soft reset. Registers, memory and the loaded image keep their contents. */
int intloom_reset(struct intloom_device *device);

int intloom_read_status(struct intloom_device *device, struct intloom_status *status);
int intloom_read_counters(struct intloom_device *device, uint32_t counters[INTLOOM_COUNTERS]);

/* CRC-32 of IEEE 802.3, as images have it. */
uint32_t intloom_crc32(const void *data, uint32_t length);

/* Names for messages; an unknown number gives "unknown". */
const char *intloom_result_name(int result);
const char *intloom_cause_name(enum intloom_cause cause);

#ifdef __cplusplus
}
#endif

#endif
