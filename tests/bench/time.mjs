// Milliseconds of CLOCK_MONOTONIC: the same clock in every process of this machine.
export const now = () => Number(process.hrtime.bigint()) / 1e6;
