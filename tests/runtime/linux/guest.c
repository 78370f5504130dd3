/* A program of the guest: `guest NAME` does one thing with the driver and prints its result as a line. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "example.h"
#include "intloom_ioctl.h"
#include "intloom_linux.h"
#include "program.h"

#define PATH "/dev/intloom0"

static uint32_t sum;

void example_input(const struct intloom_tensor *tensor, uint8_t *values, uint32_t count)
{
    (void)tensor;
    for (uint32_t i = 0; i < count; i++)
        values[i] = (uint8_t)(i * 7u);
}

void example_output(const struct intloom_tensor *tensor, const uint8_t *values, uint32_t count)
{
    (void)tensor;
    sum ^= intloom_crc32(values, count);
}

/* The window of the program and one page more, which no program may write. */
static int open_device(struct intloom_linux *opened, struct intloom_device *device)
{
    struct intloom_transport transport;
    struct intloom_window window;
    const int result = intloom_linux_open(opened, PATH, PROGRAM_WINDOW_BYTES + 4096u, &transport, &window);

    if (result)
        printf("cannot open: %s\n", strerror(errno));
    return result ? result : intloom_probe(device, &transport, &window);
}

static void run(const char *name)
{
    struct intloom_linux opened;
    struct intloom_device device;
    int result = open_device(&opened, &device);

    sum = 0;
    if (!result)
        result = example_run(&device);
    printf("%s %s %08x\n", name, intloom_result_name(result), (unsigned)sum);
    intloom_linux_close(&opened);
}

static void two_processes(void)
{
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            run("side by side");
            fflush(stdout);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

/* Start a program in a child and kill the child at once. */
static void killed(void)
{
    struct intloom_linux opened;
    struct intloom_device device;
    struct intloom_image image;
    int started[2], status = 0;
    char result = 0;
    pid_t child;

    if (pipe(started))
        return;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        result = (char)open_device(&opened, &device);
        if (!result)
            result = (char)intloom_open_image(&image, program_image, PROGRAM_IMAGE_BYTES);
        if (!result)
            result = (char)intloom_load_image(&device, &image);
        if (!result)
            result = (char)intloom_start(&device, 0);
        if (!result)
            result = (char)(intloom_poll(&device) == INTLOOM_PENDING ? 0 : 100);
        (void)!write(started[1], &result, 1);
        for (;;)
            pause();
    }
    (void)!read(started[0], &result, 1);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("killed while running: start %d, signal %d\n", result, WTERMSIG(status));
    run("after the kill");
}

/* A window that ends before the program's outputs: the accelerator stops, the page behind it keeps its bytes. */
static void confined(void)
{
    struct intloom_linux opened;
    struct intloom_device device;
    struct intloom_status status;
    struct intloom_image image;
    struct intloom_region region;
    int result = open_device(&opened, &device);

    if (!result)
        result = intloom_open_image(&image, program_image, PROGRAM_IMAGE_BYTES);
    if (!result)
        result = intloom_load_image(&device, &image);
    if (!result)
        result = intloom_get_region(&image, 0, &region);
    if (!result) {
        struct intloom_submit submit = {region.window_at, 64u * 8u, region.code_to / device.word_bytes,
                                        region.instructions, 1u << 20, 0};
        struct intloom_wait wait = {10000u, 0};
        if (ioctl(opened.file, INTLOOM_SUBMIT, &submit) || ioctl(opened.file, INTLOOM_WAIT, &wait))
            printf("confined: %s\n", strerror(errno));
        intloom_read_status(&device, &status);
        printf("confined: ended %u, cause %s\n", wait.ended, intloom_cause_name(status.cause));
    } else {
        printf("confined: %s\n", intloom_result_name(result));
    }
    intloom_linux_close(&opened);
}

static void tried(const char *what, int result)
{
    printf("%s: %s\n", what, result ? strerror(errno) : "taken");
}

static int submit(int file, uint32_t at, uint32_t bytes, uint32_t reserved)
{
    struct intloom_submit given = {at, bytes, 0, 1, 0, reserved};
    return ioctl(file, INTLOOM_SUBMIT, &given);
}

static int allocate(int file, uint64_t bytes)
{
    struct intloom_buffer given = {bytes};
    return ioctl(file, INTLOOM_ALLOCATE, &given);
}

static int look_at(int file, uint32_t offset)
{
    struct intloom_register given = {offset, 0};
    return ioctl(file, INTLOOM_READ, &given);
}

static int map_at(int file, size_t bytes, off_t offset)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset) == MAP_FAILED;
}

static void misuse(void)
{
    const int file = open(PATH, O_RDWR);

    tried("another call", ioctl(file, _IO('L', 99)));
    tried("a null pointer", ioctl(file, INTLOOM_SUBMIT, NULL));
    tried("a program without a buffer", submit(file, 0, 64, 0));
    tried("a map without a buffer", map_at(file, 4096, 0));
    tried("a buffer of nothing", allocate(file, 0));
    tried("a buffer of 2^64 - 1", allocate(file, UINT64_MAX));
    tried("a buffer beyond the limit", allocate(file, (1ull << 30) + 1));
    tried("a buffer beyond the memory", allocate(file, 1ull << 30));
    tried("a buffer", allocate(file, 8000));
    tried("a second buffer", allocate(file, 4096));
    tried("a map of more", map_at(file, 3 * 4096, 0));
    tried("a map behind it", map_at(file, 4096, 4096));
    tried("an empty window", submit(file, 0, 0, 0));
    tried("a window behind the buffer", submit(file, 8192, 64, 0));
    tried("a window across its end", submit(file, 4096, 4096 + 64, 0));
    tried("a window around 2^32", submit(file, 0xffffffc0u, 128, 0));
    tried("a window between words", submit(file, 0, 63, 0));
    tried("a window between lines", submit(file, 32, 64, 0));
    tried("a reserved field", submit(file, 0, 64, 1));
    tried("a register between words", look_at(file, 2));
    tried("a register behind the last", look_at(file, 0x400));
    tried("a hole between registers", look_at(file, INTLOOM_FIRST_COUNTER - 4u));
    tried("the memory base", look_at(file, INTLOOM_REG_BASE_LOW));
    tried("the command register", look_at(file, INTLOOM_REG_CONTROL));
    tried("a reset without a program", ioctl(file, INTLOOM_RESET));
    close(file);
}

/* Keep the device open until a line comes in, then try to use it. */
static void hold(void)
{
    struct intloom_linux opened;
    struct intloom_device device;
    const int result = open_device(&opened, &device);
    char line[8];

    printf("held %s\n", intloom_result_name(result));
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        line[0] = 0;
    tried("a register after it", look_at(opened.file, INTLOOM_REG_MAGIC));
    tried("a program after it", submit(opened.file, 0, 64, 0));
    intloom_linux_close(&opened);
}

int main(int count, char **names)
{
    const char *name = count > 1 ? names[1] : "";

    if (!strcmp(name, "misuse"))
        misuse();
    else if (!strcmp(name, "two"))
        two_processes();
    else if (!strcmp(name, "killed"))
        killed();
    else if (!strcmp(name, "confined"))
        confined();
    else if (!strcmp(name, "hold"))
        hold();
    else
        run(name);
    return 0;
}
