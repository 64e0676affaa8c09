import { randomFillSync } from 'node:crypto'

/** Filled with many ids' worth of chance at a time: asking for little at a time costs more than the ids. */
const pool = Buffer.alloc(8_192)
let used = pool.length

function random(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.toString('hex', used - bytes, used)
}

/** A new trace's id, in hex. */
export const traceId = (): string => random(16)

/** A new span's id, in hex. */
export const spanId = (): string => random(8)
