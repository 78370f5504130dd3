/* Trap handler of a system with threads: saves the registers of the thread, and goes on with the one that is chosen. */
    .section .text
    .global switch_trap
    .balign 4
    .option push
    .option arch, +zicsr
switch_trap:
    addi sp, sp, -128
    sw x1, 4(sp)
    .irp n, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sw x\n, 4*\n(sp)
    .endr
    csrr t0, mepc
    sw t0, 0(sp)
    mv a0, sp
    call threads_trap
    mv sp, a0
    lw t0, 0(sp)
    csrw mepc, t0
    lw x1, 4(sp)
    .irp n, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    lw x\n, 4*\n(sp)
    .endr
    addi sp, sp, 128
    mret
    .option pop
