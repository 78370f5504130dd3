/* Calls of the Linux driver's device /dev/intloomN.
 *
 * Each open file has one buffer, which mmap at offset 0 shows, and at most one program that runs. A program can read and
 * write its window, which is a part of that buffer, and nothing else: the driver alone writes the registers. */
#ifndef INTLOOM_IOCTL_H
#define INTLOOM_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

struct intloom_buffer {
	__u64 bytes; /* In: at least; out: the size, whole pages. */
};

/* Places are bytes from the start of the buffer; the program's first word counts from the window. */
struct intloom_submit {
	__u32 window_at;    /* A multiple of 64. */
	__u32 window_bytes; /* A multiple of the word size, register CAP_ROWS. */
	__u32 program;      /* First word of the program, relative to the window. */
	__u32 instructions;
	__u32 watchdog;     /* Cycles without progress after which the program ends with an error; 0: never. */
	__u32 reserved;     /* 0. */
};

struct intloom_wait {
	__u32 milliseconds;
	__u32 ended; /* Out: 1 if the file has no program that runs. */
};

/* A register that the file may see: of the hardware's description, STATUS and ERROR_INDEX of the file's own program, and
 * the counters of the program that ran last, of any file. */
struct intloom_register {
	__u32 offset;
	__u32 value;
};

/* Allocate the file's buffer, filled with zeros; once for each open file. */
#define INTLOOM_ALLOCATE _IOWR('L', 0, struct intloom_buffer)
/* Start a program. While one of another file runs, the call waits, or fails with EAGAIN if the file is O_NONBLOCK. */
#define INTLOOM_SUBMIT _IOW('L', 1, struct intloom_submit)
#define INTLOOM_WAIT _IOWR('L', 2, struct intloom_wait)
#define INTLOOM_READ _IOWR('L', 3, struct intloom_register)
/* End the file's program, if it runs. */
#define INTLOOM_RESET _IO('L', 4)

#endif
