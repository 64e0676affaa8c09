import { CannotExpress } from './cannot-express.ts'

/** How much work a schema may still make. Schemas come from strangers, and whoever converts one holds up everybody. */
export interface Purse {
  /** Throws `CannotExpress` where nothing is left. */
  spend(steps: number, at?: string): void
}

/** Some tenths of a second. */
const maxSteps = 2_000_000

/** What one part of a schema costs, whatever it holds. */
export const stepsPerSchema = 100

export function createPurse(steps = maxSteps): Purse {
  let left = steps
  return {
    spend(steps, at = '') {
      left -= steps
      if (left < 0) throw new CannotExpress(at, 'the schema', 'is too large')
    },
  }
}
