import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Seal } from '../core/seal.ts'

/** A seal for what does not outlive this process: its key is drawn at random and kept nowhere. What it closes can be read. */
export function passingSeal(): Seal {
  const key = randomBytes(32)
  const mark = (text: string, binding: string) =>
    createHmac('sha256', key)
      .update(JSON.stringify([text, binding]))
      .digest('base64url')

  return {
    close: (text, binding) => `${text}.${mark(text, binding)}`,
    open(sealed, binding) {
      const dot = sealed.lastIndexOf('.')
      const text = sealed.slice(0, Math.max(dot, 0))
      // Compared as text, so that only one spelling of the mark will do.
      const given = Buffer.from(sealed.slice(dot + 1))
      const expected = Buffer.from(mark(text, binding))
      return given.length === expected.length && timingSafeEqual(given, expected) ? text : undefined
    },
  }
}
