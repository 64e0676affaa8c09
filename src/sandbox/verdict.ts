import * as z from 'zod'
import type { Verdict } from './guest/frames.ts'

const position = z.number().int().min(1).max(10_000_000)

const shape = z.strictObject({
  status: z.enum(['ok', 'error', 'timeout', 'out_of_memory']),
  error: z
    .strictObject({
      name: z.string().max(256),
      message: z.string().max(8192),
      line: position.optional(),
      column: position.optional(),
      code: z.string().max(256).optional(),
    })
    .optional(),
  truncated: z.array(z.string().max(512)).max(4),
  broken: z.boolean().optional(),
})

/** How a program ended, as its child tells it; undefined if no honest child would put it so. */
export function readVerdict(payload: Buffer): Verdict | undefined {
  const { success, data } = shape.safeParse(parsed(payload.toString()))
  return success ? (data as Verdict) : undefined
}

/** A result; undefined if it is not JSON. */
export function readValue(payload: Buffer): string | undefined {
  const value = payload.toString()
  return parsed(value) === undefined ? undefined : value
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}
