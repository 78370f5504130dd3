/* Entry from reset: stack, zeroed variables, trap handler, main. */
    .section .text.start, "ax"
    .global start
    .option norelax
start:
    la gp, __global_pointer$
    la sp, stack_end
    la t0, bss_start
    la t1, bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  la t0, trap
    .option push
    .option arch, +zicsr
    csrw mtvec, t0
    .option pop
    call main
3:  j 3b

/* The device image and the inputs of the check, as `intloom export` and the system's builder wrote them. */
    .section .rodata
    .balign 64
    .global program_image
program_image:
    .incbin "program.bin"
    .balign 64
    .global check_inputs
check_inputs:
    .incbin "check.bin"
    .byte 0
